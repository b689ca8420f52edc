"""What people see of runs: progress, tables, CSV."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from leveller.errors import UserError
from simulator.compare import FIGURES, Summary, figures
from simulator.results import Result

SHOWN_JOBS = 40
"""Longer lists are cut on screen; --json and --csv have all."""

WIDEST = 10_000
"""Characters of the longest line in a file or a pipe."""


@contextmanager
def progress(horizon: float, runs: int) -> Iterator[Callable[[str], Callable[[float], object]]]:
    """Show a bar on standard error, where that is a terminal, for ``runs`` runs of ``horizon`` seconds.

    Gives a function that announces the next run and returns what to tell its simulated time.
    """
    screen = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=screen, transient=True, disable=not sys.stderr.isatty()) as bars:
        task = bars.add_task("", total=horizon * runs)
        begun = -1

        def next_run(label: str) -> Callable[[float], object]:
            nonlocal begun
            begun += 1
            base = begun * horizon
            bars.update(task, description=label, completed=base)
            return lambda now: bars.update(task, completed=base + now)

        yield next_run


def console() -> Console:
    """Return what prints on standard output, literally: as wide as its lines where that is no terminal."""
    shown = Console(markup=False, emoji=False)
    if not shown.is_terminal:
        shown.width = WIDEST
    return shown


def print_result(result: Result) -> None:
    """Print a run as a table and its figures."""
    table = Table("job", "R", "iterations")
    for job in result.jobs[:SHOWN_JOBS]:
        table.add_row(job.id, f"{job.rate:.4f}", str(job.iterations))
    screen = console()
    screen.print(table)
    if len(result.jobs) > SHOWN_JOBS:
        screen.print(f"... and {len(result.jobs) - SHOWN_JOBS} more jobs (--json has all)")
    if result.unmeasured:
        screen.print(
            f"{result.unmeasured} jobs had no time for an iteration before the horizon: they have no R"
        )
    if result.recovery:
        screen.print(
            f"after {result.newcomer} came: the lowest R settled at {result.recovery.settled:.4f}, "
            f"in {result.recovery.seconds:.1f} s"
        )
    screen.print(
        f"{result.policy}: minimum R {result.min_rate:.4f}, average {result.average_rate:.4f}, "
        f"Jain {result.jain:.4f}, GPU utilization {result.gpu_utilization:.1%}; "
        f"{result.events} events in {result.wall_s:.1f} s"
    )


def print_comparison(comparison: Sequence[Summary]) -> None:
    """Print the policies' figures side by side, with confidence intervals where there are several seeds."""
    names = Column("policy", min_width=max((len(one.policy) for one in comparison), default=0))
    shown = figures([run.as_json() for summary in comparison for run in summary.runs])
    headings = (Column(FIGURES[figure], overflow="fold") for figure in shown)
    table = Table(names, *headings, "events", "wall s")
    for summary in comparison:
        estimates = [summary.estimate(figure) for figure in shown]
        table.add_row(
            summary.policy,
            *(
                f"{one.mean:.4f} ± {one.half_width:.4f}" if len(summary.runs) > 1 else f"{one.mean:.4f}"
                for one in estimates
            ),
            str(sum(run.events for run in summary.runs)),
            f"{sum(run.wall_s for run in summary.runs):.1f}",
        )
    console().print(table)


def write_csv(path: Path, comparison: Sequence[Summary]) -> None:
    """Write a row per policy, seed and job. Raises UserError where ``path`` cannot be written."""
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["policy", "seed", "job", "R", "iterations", "start_s", "end_s", "gpus"])
            writer.writerows(
                [summary.policy, seed, job.id, job.rate, job.iterations, job.start, job.end, job.gpus]
                for summary in comparison
                for seed, run in zip(summary.seeds, summary.runs, strict=True)
                for job in run.jobs
            )
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror})", "give --csv another file") from None
