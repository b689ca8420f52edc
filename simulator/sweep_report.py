"""What people see of a sweep: a table of means over the seeds, a CSV file of all runs, and pictures."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from leveller.errors import UserError
from simulator import pictures
from simulator.compare import FIGURES, Estimate, estimate, figures
from simulator.grid import Value
from simulator.report import console
from simulator.store import Row

DRAWN = ("min_R", "recovery_s")
"""The figures of `FIGURES` that pictures show."""

Line = tuple[str, tuple[tuple[str, Value], ...]]
"""A policy and its settings: all that a run has besides its seed."""


@contextmanager
def progress(runs: int) -> Iterator[Callable[[Row], object]]:
    """Show a bar of ``runs`` runs on standard error, where that is a terminal. Gives what to tell a row."""
    screen = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bars:
        task = bars.add_task("runs", total=runs)
        yield lambda row: bars.update(task, advance=1, description=row.point.policy)


def estimates(rows: Sequence[Row], figure: str) -> dict[Line, Estimate]:
    """Return the mean of a figure over the seeds, for every policy and its settings, in the rows' order."""
    values: dict[Line, list[float]] = {}
    for row in rows:
        line = row.point.policy, tuple(row.point.settings.items())
        values.setdefault(line, []).append(float(row.figures[figure]))
    return {line: estimate(found) for line, found in values.items()}


def summary(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the estimates of all figures as ``--json`` prints them."""
    found = {figure: estimates(rows, figure) for figure in _figures(rows)}
    return [
        {
            "policy": policy,
            "settings": dict(settings),
            **{figure: lines[policy, settings].mean for figure, lines in found.items()},
            "ci95": {figure: lines[policy, settings].half_width for figure, lines in found.items()},
        }
        for policy, settings in found["min_R"]
    ]


def _figures(rows: Sequence[Row]) -> list[str]:
    return figures([row.figures for row in rows])


def print_table(rows: Sequence[Row]) -> None:
    """Print the means over the seeds, with their intervals."""
    keys = list(rows[0].point.settings)
    short = [key.rpartition(".")[2] for key in keys]
    keys = short if len(set(short)) == len(keys) else keys
    found = {figure: estimates(rows, figure) for figure in _figures(rows)}
    table = Table(*keys, "policy", *(FIGURES[figure] for figure in found))
    for line in found["min_R"]:
        policy, settings = line
        cells = [f"{lines[line].mean:.3f} ± {lines[line].half_width:.3f}" for lines in found.values()]
        table.add_row(*(str(value) for _, value in settings), policy, *cells)
    console().print(table)


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Write a line per run, in the sweep's order. Raises UserError where ``path`` cannot be written."""
    keys, shown = list(rows[0].point.settings), [*_figures(rows), "events"]
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([*keys, "policy", "seed", *shown])
            writer.writerows(
                [
                    *row.point.settings.values(),
                    row.point.policy,
                    row.point.seed,
                    *(row.figures[figure] for figure in shown),
                ]
                for row in rows
            )
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror})", "give --csv another file") from None


def draw(rows: Sequence[Row], prefix: Path) -> tuple[Path, Path]:
    """Write PREFIX.png and PREFIX.svg: minimum R against every key that was set to three values or more.

    Where none was, against those of two. Below it the recovery time, where there is one. A line per policy
    and values of the other keys, with 95 % bars.
    Raises UserError where no key has several values, where matplotlib is not installed, or the files cannot
    be written.
    """
    found = {figure: estimates(rows, figure) for figure in _figures(rows) if figure in DRAWN}
    values = {key: _values(found["min_R"], key) for key in rows[0].point.settings}
    keys = [key for key, several in values.items() if len(several) > 1]
    if not keys:
        raise UserError("--plot has nothing to plot against", "give a --set KEY=VALUE,VALUE")
    shown = [key for key in keys if len(values[key]) > 2] or keys
    figure = pictures.new_figure(7 * len(shown), 5 * len(found))
    panels = figure.subplots(len(found), len(shown), squeeze=False)
    for line, (drawn, lines) in zip(panels, found.items(), strict=True):
        for axes, key in zip(line, shown, strict=True):
            _against(axes, key, values[key], lines, [other for other in keys if other != key])
            axes.set(xlabel=key, ylabel=FIGURES[drawn])
    return pictures.write(figure, prefix)


def _values(found: Mapping[Line, Estimate], key: str) -> list[Value]:
    return list(dict.fromkeys(dict(settings)[key] for _, settings in found))


def _against(
    axes: Any,  # noqa: ANN401 (matplotlib is optional)
    key: str,
    values: Sequence[Value],
    found: Mapping[Line, Estimate],
    others: Sequence[str],
) -> None:
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    numeric = len(numbers) == len(values)
    place = dict(zip(values, numbers if numeric else range(len(values)), strict=True))
    lines: dict[str, list[tuple[Any, Estimate]]] = {}
    for (policy, settings), one in found.items():
        known = dict(settings)
        label = " ".join([policy, *(f"{other}={known[other]}" for other in others)])
        lines.setdefault(label, []).append((place[known[key]], one))
    for label, at in lines.items():
        axes.errorbar(
            [x for x, _ in at],
            [one.mean for _, one in at],
            yerr=[one.half_width for _, one in at],
            marker="o",
            markersize=3,
            capsize=2,
            label=label,
        )
    if not numeric:
        axes.set_xticks(range(len(values)), [str(value) for value in values])
    elif (least := min(abs(at) for at in place.values() if at)) * 20 < max(place.values()):
        axes.set_xscale("symlog", linthresh=least)  # logarithmic, with a place for 0
    axes.legend(fontsize="small")
