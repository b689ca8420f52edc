"""Many runs, kept in a file as they end: a sweep that was stopped goes on where it was."""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from leveller.errors import UserError
from simulator.fabric import Fabric
from simulator.grid import Point, name
from simulator.run import simulate
from simulator.scenario import Scenario
from simulator.store import Row, Store

copyreg.pickle(UserError, lambda error: (UserError, (error.what, error.mend)))  # so that workers can raise it

Variants = Mapping[str, tuple[Scenario, Fabric]]
"""The scenario and the fabric of every combination of settings, by `simulator.grid.name` of these."""


class Runner(Protocol):
    """Runs points somewhere, with the results of `run_point`, and yields the rows as they come.

    What it started has ended when its generator has, whether that came to its end or was closed.
    """

    def __call__(self, points: Sequence[Point], variants: Variants) -> Iterator[Row]:
        """Yield a row per point, in any order."""
        ...


def run_point(point: Point, scenario: Scenario, fabric: Fabric) -> Row:
    """Run one point; ``scenario`` and ``fabric`` are those of its settings."""
    figures = simulate(scenario, fabric, point.policy, point.seed).as_json()
    return Row(point, {key: value for key, value in figures.items() if key not in ("policy", "wall_s")})


def here(points: Sequence[Point], variants: Variants) -> Iterator[Row]:
    """Run the points one after the other, in this process (a `Runner`)."""
    for point in points:
        yield run_point(point, *variants[name(point.settings)])


def sweep(
    todo: Sequence[Point],
    variants: Variants,
    runner: Runner,
    store: Store | None,
    done: Callable[[Row], object],
) -> list[Row]:
    """Run the points, those that ``store`` has not yet, and return all rows in the points' order.

    A point's result does not depend on ``runner``, nor on what ran before it. ``done`` is told each row.
    """
    rows = dict(store.rows) if store else {}
    for point in todo:
        if point.key in rows:
            done(rows[point.key])
    left = [point for point in todo if point.key not in rows]
    for row in runner(left, variants) if left else ():
        rows[row.point.key] = row
        if store:
            store.add(row)
        done(row)
    if store:
        store.close(todo)
    return [rows[point.key] for point in todo]
