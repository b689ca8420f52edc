"""``leveller demo``."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from leveller.errors import UserError

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)

DAY_S = 86400

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


@app.command()
def demo(
    scenario: Annotated[
        str, typer.Option(help="pair, trio, turns, leafspine, ddp, or a scenario file (.toml).")
    ] = "pair",
    policy: Annotated[str, typer.Option(help="Policies, with commas between.")] = "fair,static,leveller",
    seconds: Annotated[float, typer.Option(help="How long each policy is measured.")] = 36.0,
    warmup: Annotated[float, typer.Option(help="Seconds before that, profiling included.")] = 30.0,
    switch: Annotated[str, typer.Option(help="softswitch or bmv2.")] = "softswitch",
    scope: Annotated[str, typer.Option(help="fabric, switch or port: how far one level reaches.")] = "fabric",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and progress on stderr.")] = False,
) -> None:
    """Run training jobs through P4 switches in a lab, policy by policy, and compare their progress."""
    try:
        _demo(scenario, policy.split(","), seconds, warmup, switch, scope, as_json)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _demo(
    scenario: str,
    policies: list[str],
    seconds: float,
    warmup: float,
    switch: str,
    scope: str,
    as_json: bool,
) -> None:
    # Imported here so that `leveller demo --help` is quick.
    from rich.console import Console

    from controlplane.policies import POLICIES, Scope
    from topo import demo as demonstration
    from topo import mininet, namespace
    from topo import scenario as scenarios

    known = sorted([*POLICIES, demonstration.CASSINI])
    for name in policies:
        if name not in known:
            raise UserError(f"there is no policy {name!r}", f"choose from {', '.join(known)}")
    if len(set(policies)) < len(policies):
        raise UserError(f"--policy {','.join(policies)} names a policy twice", "name each once")
    if not 1 <= seconds <= DAY_S:
        raise UserError(f"--seconds {seconds:g}", f"give 1 to {DAY_S}")
    if not 0 <= warmup <= DAY_S:
        raise UserError(f"--warmup {warmup:g}", f"give 0 to {DAY_S}")
    if scope not in tuple(Scope):
        raise UserError(f"there is no scope {scope!r}", f"choose one of {', '.join(Scope)}")
    if switch not in mininet.SWITCHES:
        raise UserError(f"there is no switch {switch!r}", f"choose one of {', '.join(mininet.SWITCHES)}")
    plan = demonstration.Plan(scenario, scenarios.find(scenario), policies, switch, scope, warmup, seconds)
    mininet.SWITCHES[switch].executable()
    if not namespace.inside():
        raise typer.Exit(namespace.run(namespace.python("leveller", *sys.argv[1:])))
    namespace.prepare()
    outcomes = demonstration.run(plan, Console(stderr=as_json))
    if as_json:
        sys.stdout.write(json.dumps([outcome.to_json() for outcome in outcomes]) + "\n")
    else:
        Console().print(demonstration.table(plan, outcomes))
