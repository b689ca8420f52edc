"""``leveller agent``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()


@app.command()
def agent(
    config: Annotated[Path, typer.Option("--config", help="The agent's TOML file, see docs/agent.md.")],
    verbose: Annotated[bool, typer.Option("--verbose", help="Log every change.")] = False,
) -> None:
    """Run the host agent of one tenant host, until Ctrl-C or SIGTERM."""
    # Imported here so that `leveller agent --help` is quick.
    import asyncio
    import logging
    import sys

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
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    asyncio.run(run(load(config)))
