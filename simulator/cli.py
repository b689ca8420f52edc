"""The subcommands of ``leveller sim``; what they need is imported when one runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from leveller.errors import UserError


class _RunByDefault(TyperGroup):
    """``sim SCENARIO.toml`` runs it; other words name a subcommand."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer()
sim = typer.Typer(cls=_RunByDefault, no_args_is_help=True)
app.add_typer(sim, name="sim", help="Simulate policies: leveller sim SCENARIO.toml --policy NAME [--json].")

ScenarioFile = Annotated[Path, typer.Argument(help="Scenario file.", metavar="SCENARIO.toml")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@sim.command(hidden=True)
def run(
    scenario: ScenarioFile,
    policy: Annotated[str, typer.Option(help="How jobs are ranked.", metavar="NAME")],
    seed: Annotated[int | None, typer.Option(help="Instead of the scenario's.", min=0)] = None,
    as_json: Json = False,
) -> None:
    """Run a scenario under one policy."""
    from simulator import report
    from simulator.run import simulate
    from simulator.scenario import read

    settings, fabric = read(scenario)
    with report.progress(settings.horizon_s, 1) as bar:
        result = simulate(settings, fabric, policy, seed, bar(policy))
    if as_json:
        sys.stdout.write(json.dumps(result.as_json()) + "\n")
    else:
        report.print_result(result)


@sim.command()
def compare(
    scenario: ScenarioFile,
    policy: Annotated[str, typer.Option(help="Policies, with commas between.", metavar="NAMES")] = "all",
    seeds: Annotated[int, typer.Option(help="Runs per policy, with as many seeds.", min=1, max=10_000)] = 1,
    seed: Annotated[int | None, typer.Option(help="The first one, instead of the scenario's.", min=0)] = None,
    csv: Annotated[Path | None, typer.Option(help="Write a row per job and run.", metavar="FILE")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw PREFIX.png, PREFIX.svg.", metavar="PREFIX")] = None,
    as_json: Json = False,
) -> None:
    """Run a scenario under several policies, side by side."""
    from controlplane.policies import POLICIES
    from simulator import report
    from simulator.compare import compare_policies
    from simulator.scenario import read

    names = list(POLICIES) if policy == "all" else policy.split(",")
    unknown = [name for name in names if name not in POLICIES]
    if unknown:
        raise UserError(f"--policy {unknown[0]!r}", f"choose from {', '.join(POLICIES)}")
    settings, fabric = read(scenario)
    first = settings.seed if seed is None else seed
    with report.progress(settings.horizon_s, len(names) * seeds) as bar:
        comparison = compare_policies(settings, fabric, names, range(first, first + seeds), bar)
    if csv is not None:
        report.write_csv(csv, comparison)
    if plot is not None:
        from simulator import plots

        plots.draw(comparison, plot)
    if as_json:
        sys.stdout.write(json.dumps([summary.as_json() for summary in comparison]) + "\n")
    else:
        report.print_comparison(comparison)
