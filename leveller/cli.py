"""``leveller``: one command whose subcommands belong to the parts.

A part's ``cli`` module says what its subcommands take, and imports what they need only when one runs, so
that the host agent never loads the lab, nor the lab the controller (``tests/leveller/test_cli.py`` checks).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

import typer

import controlplane.cli
import hostagent.cli
import simulator.cli
import topo.cli
from leveller import __version__
from leveller.errors import UserError
from leveller.output import open_closed, standard_output

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
for part in (controlplane.cli, hostagent.cli, simulator.cli, topo.cli):
    app.add_typer(part.app)


@app.callback(invoke_without_command=True)
def _root(ctx: typer.Context, version: bool = typer.Option(False, "--version", help="Print it.")) -> None:
    """Fair communication scheduling for multi-tenant training clusters, done in the switches."""
    if version:
        typer.echo(__version__)
    elif ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Whatever typer has to say about a command line; it does not export the class."""


def run(command: Callable[[], object]) -> None:
    """Run a typer application as a whole process.

    A user's error is one line on stderr and exit code 2; Ctrl-C is exit code 130, as shells have it.
    """
    open_closed()
    try:
        try:
            command()
        finally:
            with standard_output():
                pass  # what is still to be written
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)


def main() -> None:
    """Entry point of the ``leveller`` command."""
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # else its core tells every TLS handshake that fails
    run(_command)


def _command() -> None:
    try:
        sys.exit(app(standalone_mode=False))
    except _UsageError as error:
        what: str = error.format_message()  # type: ignore[attr-defined]
        asked = error.ctx.command_path if error.ctx else "leveller"  # type: ignore[attr-defined]
        if what.startswith("Usage:"):  # what it says of a command that wants more words
            what = f"{asked} is not all of a command"
        raise UserError(what.rstrip("."), f"see {asked} --help") from None
