"""The subcommands ``controller``, ``top``, ``check``, ``shell`` and ``levels``."""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import sys
from pathlib import Path
from typing import Annotated

import structlog
import typer
from rich.console import Console
from rich.table import Table

import controlplane.qos.cli
from controlplane import offline
from controlplane.policies import POLICIES, Scope
from leveller.errors import UserError
from leveller.logs import escape_controls
from leveller.text import printable

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
app.add_typer(controlplane.qos.cli.app)

MAX_QUEUES = 8


@app.command()
def controller(
    config: Annotated[Path, typer.Option(help="Configuration file.", metavar="FILE")] = Path("leveller.toml"),
    verbose: Annotated[bool, typer.Option("--verbose", help="Log debugging messages too.")] = False,
) -> None:
    """Run the controller until it is interrupted."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            escape_controls,
            structlog.processors.LogfmtRenderer(key_order=("timestamp", "level", "event")),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if verbose else logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    asyncio.run(_run(config))


async def _run(path: Path) -> None:
    # Imported here: gRPC and P4Runtime take a while to load, and ``levels`` needs neither.
    from controlplane.config import load
    from controlplane.controller import Controller
    from leveller.signals import stop_signals

    config = load(path)
    # A descriptor for each agent, switch and whoever else connects: the usual 1024 are soon used up.
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    stop = asyncio.Event()
    for number in stop_signals():
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await Controller(config).run(stop)


@app.command()
def top(
    http: Annotated[
        str, typer.Option(help="The controller's controller.http.", metavar="HOST:PORT")
    ] = "127.0.0.1:9560",
    once: Annotated[
        bool, typer.Option("--once", help="Print it once instead of again every second.")
    ] = False,
) -> None:
    """Show who is behind, at what level, and why, while the controller runs."""
    from controlplane import top as view

    console = Console(markup=False, emoji=False, highlight=False)
    if once:
        console.print(view.render(view.fetch(http), height=10**6))
        return
    try:
        view.watch(http, console)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


@app.command()
def check(
    config: Annotated[Path, typer.Argument(help="Configuration file.", metavar="CONFIG")] = Path(
        "leveller.toml"
    ),
    offline: Annotated[bool, typer.Option("--offline", help="Ask no switch.")] = False,
    replace_pipeline: Annotated[
        bool, typer.Option("--replace-pipeline", help="Whatever program a switch runs may be pushed over.")
    ] = False,
    deadline_s: Annotated[float, typer.Option(help="For each answer of a switch, seconds.", min=0.1)] = 5.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check that the configuration fits the program and every switch; exit code 2 where it does not."""
    from controlplane.check import check as run_check
    from controlplane.check import unreadable
    from controlplane.config import load

    try:
        loaded = load(config)
    except UserError as error:
        report = unreadable(error)
    else:
        program = loaded.program()
        report = run_check(loaded, program, offline=offline, may_push=replace_pipeline, deadline_s=deadline_s)
    if as_json:
        sys.stdout.write(json.dumps(report.as_json()) + "\n")
    else:
        for said in (*report.findings, *report.notes):
            sys.stdout.write(printable(str(said)) + "\n")
        if not report.findings:
            sys.stdout.write("it fits\n")
    raise typer.Exit(2 if report.findings else 0)


@app.command()
def shell(
    switch: Annotated[str, typer.Argument(help="A switch of the configuration.", metavar="SWITCH")],
    config: Annotated[Path, typer.Option(help="Configuration file.", metavar="FILE")] = Path("leveller.toml"),
) -> None:
    """Open p4runtime-shell on a switch, read-only; commands may be piped in."""
    from controlplane.config import load
    from controlplane.shell import start

    switches = {each.name: each for each in load(config).switches}
    if switch not in switches:
        raise UserError(f"{config} has no switch {switch!r}", f"give one of: {', '.join(switches)}")
    start(switches[switch], lambda line: typer.echo(line, err=True))


@app.command()
def levels(
    file: Annotated[Path, typer.Argument(help="JSON file with jobs and flows.", metavar="FILE")],
    queues: Annotated[int, typer.Option(help="Number of levels K, 1 to 8.")] = MAX_QUEUES,
    scope: Annotated[str, typer.Option(help=f"One of: {', '.join(Scope)}.")] = Scope.FABRIC,
    policy: Annotated[str, typer.Option(help=f"One of: {', '.join(POLICIES)}.")] = "leveller",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compute levels offline with the controller's own policies."""
    if not 1 <= queues <= MAX_QUEUES:
        raise UserError(f"--queues {queues}", f"give 1 to {MAX_QUEUES}")
    if scope not in tuple(Scope):
        raise UserError(f"--scope {scope}", f"give one of: {', '.join(Scope)}")
    if policy not in POLICIES:
        raise UserError(f"--policy {policy}", f"give one of: {', '.join(POLICIES)}")
    question = offline.read(file)
    result = offline.answer(question, POLICIES[policy], queues, Scope(scope))
    if as_json:
        sys.stdout.write(json.dumps({"levels": result}) + "\n")
    else:
        Console(markup=False, emoji=False, highlight=False).print(_levels_table(question, result))


def _levels_table(question: offline.Question, result: dict[str, int] | dict[str, dict[str, int]]) -> Table:
    rates = {job.id: job.rate for job in question.jobs}
    table = Table("flow", "job", "R", "level")
    for flow in question.flows:
        level = result[flow.id]
        shown = (
            str(level) if isinstance(level, int) else ", ".join(f"{link}={at}" for link, at in level.items())
        )
        table.add_row(flow.id, flow.job, f"{rates[flow.job]:.3f}", shown)
    return table
