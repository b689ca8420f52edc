"""The subcommands of ``leveller sim``; what they need is imported when one runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from leveller.errors import UserError
from leveller.output import standard_output


class _RunByDefault(TyperGroup):
    """``sim SCENARIO.toml`` runs it; other words name a subcommand."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        if args and args[0] not in self.commands and args[0] != "--help":
            _check_word(args[0], [name for name, command in self.commands.items() if not command.hidden])
            args = ["run", *args]
        return super().parse_args(ctx, args)


def _check_word(word: str, commands: list[str]) -> None:
    """Raise UserError where ``word`` is meant for a subcommand: no option, and no file."""
    if word.startswith("-") or word.endswith(".toml") or Path(word).exists():
        return
    mend = f"give a scenario's file, or one of the commands {', '.join(commands)}"
    raise UserError(f"leveller sim {word}: there is no such command, and no such file", mend)


app = typer.Typer()
sim = typer.Typer(cls=_RunByDefault, no_args_is_help=True)
app.add_typer(sim, name="sim", help="Simulate policies: leveller sim SCENARIO.toml --policy NAME [--json].")

ScenarioFile = Annotated[Path, typer.Argument(help="Scenario file.", metavar="SCENARIO.toml")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def _policies(names: str) -> list[str]:
    from simulator.policies import SIMULATED

    chosen = sorted(SIMULATED) if names == "all" else names.split(",")
    unknown = [name for name in chosen if name not in SIMULATED]
    if unknown:
        raise UserError(f"--policy {unknown[0]!r}", f"choose from {', '.join(sorted(SIMULATED))}")
    twice = [name for name in chosen if chosen.count(name) > 1]
    if twice:
        raise UserError(f"--policy names {twice[0]} twice", "name each once")
    return chosen


def _tell_of_compiling() -> None:
    """Say on standard error why nothing happens for a while: the inner loops are still to be compiled."""
    from simulator.compiled import CACHE, COMPILED

    if COMPILED and not (CACHE and any(Path(CACHE).rglob("*.nbi"))):
        often = "once for this version of leveller" if CACHE else "each time, for want of a cache folder"
        sys.stderr.write(f"compiling the inner loops: some 20 to 80 s, {often}\n")


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
    _tell_of_compiling()
    with report.progress(settings.horizon_s, 1) as bar:
        result = simulate(settings, fabric, policy, seed, bar(policy))
    with standard_output():
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
    from simulator import report
    from simulator.compare import compare_policies
    from simulator.scenario import read

    names = _policies(policy)
    settings, fabric = read(scenario)
    first = settings.seed if seed is None else seed
    _tell_of_compiling()
    with report.progress(settings.horizon_s, len(names) * seeds) as bar:
        comparison = compare_policies(settings, fabric, names, range(first, first + seeds), bar)
    if csv is not None:
        report.write_csv(csv, comparison)
    if plot is not None:
        from simulator import plots

        plots.draw(comparison, plot)
    with standard_output():
        if as_json:
            sys.stdout.write(json.dumps([summary.as_json() for summary in comparison]) + "\n")
        else:
            report.print_comparison(comparison)


@sim.command()
def sweep(
    scenario: ScenarioFile,
    policy: Annotated[str, typer.Option(help="Policies, with commas between.", metavar="NAMES")] = "all",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Values of a key, as policy.tau_s=0.25,1,60.", metavar="KEY=VALUES"),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Runs per combination, with as many seeds.", min=1)] = 1,
    seed: Annotated[int | None, typer.Option(help="The first one, instead of the scenario's.", min=0)] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; default: one per core.", min=1)] = None,
    ray: Annotated[
        str | None, typer.Option(help="Run on the Ray cluster with this head instead.", metavar="HOST:PORT")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Keep the runs here, and go on from those it has.", metavar="FILE")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Write a row per run.", metavar="FILE")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw PREFIX.png, PREFIX.svg.", metavar="PREFIX")] = None,
    as_json: Json = False,
) -> None:
    """Run a scenario with every combination of policies, keys' values and seeds, on all cores."""
    from simulator import grid, sweep_report
    from simulator.cluster import on_ray
    from simulator.pool import cores, ended_by_sigterm, on_cores
    from simulator.store import Store, digest
    from simulator.sweep import sweep as run_all

    if ray is not None and workers is not None:
        raise UserError("--workers says nothing of a Ray cluster", "give --workers or --ray")
    runner = on_cores(workers or cores()) if ray is None else on_ray(ray)
    options = grid.parse(settings or ())
    policies = _policies(policy)
    grid.limit(policies, options, seeds)
    found = grid.variants(scenario, options)
    base = next(iter(found.values()))[0]
    first = base.seed if seed is None else seed
    todo = grid.points(policies, options, range(first, first + seeds))
    store = None if out is None else Store(out, digest(scenario, base))
    _tell_of_compiling()
    with sweep_report.progress(len(todo)) as done, ended_by_sigterm():
        rows = run_all(todo, found, runner, store, done)
    if csv is not None:
        sweep_report.write_csv(csv, rows)
    if plot is not None:
        sweep_report.draw(rows, plot)
    with standard_output():
        if as_json:
            sys.stdout.write(json.dumps(sweep_report.summary(rows)) + "\n")
        else:
            sweep_report.print_table(rows)
