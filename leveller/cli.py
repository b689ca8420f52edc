"""``leveller``: one command whose subcommands belong to the parts.

A part's ``cli`` module says what its subcommands take, and imports what they need only when one runs, so
that the host agent never loads the lab, nor the lab the controller (``tests/leveller/test_cli.py`` checks).
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import typer

import controlplane.cli
import hostagent.cli
import simulator.cli
import topo.cli
from leveller import __version__
from leveller.errors import UserError

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


def run(command: Callable[[], object]) -> None:
    """Run a typer application as a whole process: UserError is one line on stderr and exit code 2."""
    try:
        command()
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)


def main() -> None:
    """Entry point of the ``leveller`` command."""
    run(app)
