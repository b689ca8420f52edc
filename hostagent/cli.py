"""``leveller agent`` and ``leveller agent read``."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()
_agent = typer.Typer()
app.add_typer(_agent, name="agent")

SHOWN = 20
"""Most iterations that a table shows."""


class _Stderr:
    """Standard error for a log whose loss (a full disk, a reader that is gone) must not end the agent."""

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            sys.stderr.flush()


@_agent.callback(invoke_without_command=True)
def agent(
    ctx: typer.Context,
    config: Annotated[
        Path | None, typer.Option("--config", help="The agent's TOML file, see docs/agent.md.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log every change.")] = False,
) -> None:
    """Run the host agent of one tenant host, until Ctrl-C or SIGTERM."""
    if ctx.invoked_subcommand is not None:
        return
    if config is None:
        ctx.fail("Missing option '--config'.")
    # Imported here so that `leveller agent --help` is quick.
    import asyncio
    import logging

    import structlog

    from hostagent.agent import run
    from hostagent.config import load
    from leveller.logs import escape_controls

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            escape_controls,
            structlog.processors.LogfmtRenderer(key_order=("timestamp", "level", "event")),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if verbose else logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(_Stderr()),  # type: ignore[arg-type]  # it writes and flushes
    )
    asyncio.run(run(load(config)))


@_agent.command()
def read(
    file: Annotated[Path, typer.Argument(help="A training job's log.")],
    pattern: Annotated[
        str | None, typer.Option("--pattern", help="Try this format first, as [[agent.formats]] has it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what the agent makes of a log: its format, its iterations, and the lines it does not believe."""
    import json

    from hostagent.logs import FORMATS
    from hostagent.logs.custom import custom
    from hostagent.logs.offline import read as read_log
    from leveller.errors import UserError

    try:
        formats = (custom("custom", pattern), *FORMATS) if pattern is not None else FORMATS
    except ValueError as error:
        raise UserError(f"--pattern: {error}", "see docs/agent.md") from None
    summary = read_log(file, formats)
    if as_json:
        typer.echo(json.dumps(summary.as_json()))
        return
    typer.echo(f"format      {summary.format or 'no progress source: no line is an iteration known here'}")
    count = len(summary.iterations)
    typer.echo(f"iterations  {count} lines that count, the last says {'-' if count == 0 else summary.last}")
    for reason, lines in sorted(summary.rejected.items()):
        typer.echo(f"rejected    {reason}: {lines}")
    if count:
        typer.echo(f"\n{'line':>10}  {'iteration':>12}")
    for index, (line, iteration) in enumerate(summary.iterations):
        if count > SHOWN and SHOWN // 2 <= index < count - SHOWN // 2:
            if index == SHOWN // 2:
                typer.echo(f"{'..':>10}  {'..':>12}")
            continue
        typer.echo(f"{line:>10}  {iteration:>12}")
