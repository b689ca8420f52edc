"""CASSINI (NSDI 2024): no priorities; jobs start their iterations at such times that their bursts interleave.

For every link the demands of its jobs are laid around a circle as long as the least common multiple of their
iteration times, and rotated against each other until they fit best. An affinity graph of jobs and links then
makes of the links' rotations one time shift per job.

CASSINI also chooses among up to ten placements by their scores and drops those whose affinity graph has a
loop. Here the placement is given, and where there is a loop, which the paper leaves undefined, the shifts are
those of the spanning tree with the highest total score. Ours too: iteration times are rounded to `GRAIN_S`,
so that they have a common multiple; a breadth-first search starts at a component's smallest id, not at a
random job.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import lcm, prod
from typing import TYPE_CHECKING

from controlplane.model import Link
from controlplane.policies.contention import DisjointSets

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

ANGLES = 72
"""Points of the circle at which demands are compared (5 degrees apart)."""

GRAIN_S = 0.001
"""Iteration times are whole multiples of this many seconds."""

EXHAUSTIVE = 1000
"""Up to so many rotations of all jobs but the first and last, all are tried; beyond, one job at a time."""

Burst = tuple[float, float, float]
"""(from, until, share of the link's capacity), in seconds after the iteration's start."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a job alone would ask of one link in every iteration of ``iteration_s`` seconds."""

    iteration_s: float
    bursts: tuple[Burst, ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """A link's score (1: the demands always fit; it may be negative) and its jobs' shifts there, in s."""

    score: float
    shifts: tuple[float, ...]


def time_shifts(patterns: Mapping[Link, Mapping[str, Pattern]]) -> dict[str, float]:
    """Return by how many seconds each job's iterations should start after the common beginning.

    ``patterns`` has, for each link, the jobs that use it. Jobs that share no link are at 0.
    """
    iteration_s: dict[str, float] = {}
    edges: list[tuple[float, Link, str, float]] = []
    for link, on in sorted(patterns.items()):
        iteration_s |= {job: _grains(pattern.iteration_s) * GRAIN_S for job, pattern in on.items()}
        if len(on) > 1:
            jobs = sorted(on)
            best = fit(tuple(on[job] for job in jobs))
            edges += [(best.score, link, job, shift) for job, shift in zip(jobs, best.shifts, strict=True)]
    tree = spanning_tree(edges)
    by_job: defaultdict[str, list[tuple[Link, float]]] = defaultdict(list)
    by_link: defaultdict[Link, list[tuple[str, float]]] = defaultdict(list)
    for _, link, job, shift in tree:
        by_job[job].append((link, shift))
        by_link[link].append((job, shift))
    times: dict[str, float] = {}
    for first in sorted(iteration_s):
        if first in times:
            continue
        times[first] = 0.0
        waiting = deque([first])
        while waiting:
            job = waiting.popleft()
            for link, own in by_job[job]:
                for other, shift in by_link[link]:
                    if other not in times:
                        times[other] = _modulo(times[job] - own + shift, iteration_s[other])
                        waiting.append(other)
    return times


def spanning_tree(edges: Iterable[tuple[float, Link, str, float]]) -> list[tuple[float, Link, str, float]]:
    """Return the edges (score, link, job, shift) of the affinity graph's spanning tree of highest score.

    One tree for each component; ties go to the smaller link and job.
    """
    ordered = sorted(edges, key=lambda edge: (-edge[0], edge[1], edge[2]))
    number: dict[Link | str, int] = {}
    ends = [
        (number.setdefault(link, len(number)), number.setdefault(job, len(number)))
        for _, link, job, _ in ordered
    ]
    sets = DisjointSets(len(number))
    return [edge for edge, (link, job) in zip(ordered, ends, strict=True) if sets.join(link, job)]


@lru_cache(maxsize=16_384)
def fit(patterns: tuple[Pattern, ...]) -> Fit:
    """Rotate ``patterns``, which share a link, to their best score; the first stays where it is.

    There are two of them at least. Exact over the angles for two or three jobs; more are placed one after the
    other, then each is moved as long as that helps. Ties go to the least rotation.
    """
    # Imported here: numpy takes a while to load, and most commands and policies do without.
    import numpy as np

    period = lcm(*(_grains(pattern.iteration_s) for pattern in patterns))
    demand = [np.array(around(pattern, period)) for pattern in patterns]
    # 0 <= D < 2 pi / r: after a turn of 1 / r the pattern is where it was.
    turns = [max(-(-ANGLES * _grains(pattern.iteration_s) // period), 1) for pattern in patterns]
    rotated = [
        np.array([np.roll(one, turn) for turn in range(count)])
        for one, count in zip(demand, turns, strict=True)
    ]
    best = _any_of_all(rotated) if prod(turns[1:-1]) <= EXHAUSTIVE else _one_at_a_time(rotated)
    excess = _excess(np.sum(list(map(_row, rotated, best)), axis=0))
    return Fit(
        1 - excess / ANGLES,
        tuple(
            turn * period * GRAIN_S / ANGLES % (_grains(pattern.iteration_s) * GRAIN_S)
            for turn, pattern in zip(best, patterns, strict=True)
        ),
    )


def around(pattern: Pattern, period: int) -> list[float]:
    """Return the demand of ``pattern`` at each angle of a circle of ``period`` grains.

    At an angle counts what is sent at that moment; a burst does not contain its end.
    """
    grains = _grains(pattern.iteration_s)
    found = []
    for angle in range(ANGLES):
        # In whole numbers: the period of many jobs is longer than a float can tell apart.
        now = angle * period % (ANGLES * grains) / ANGLES * GRAIN_S
        found.append(sum(share for start, end, share in pattern.bursts if start <= now + 1e-9 < end))
    return found


def _any_of_all(rotated: Sequence[npt.NDArray[np.float64]]) -> list[int]:
    least, best = float("inf"), [0] * len(rotated)
    for turns in product(*(range(len(one)) for one in rotated[1:-1])):
        total = sum(map(_row, rotated[1:-1], turns), rotated[0][0])
        last = _least(total, rotated[-1])
        excess = _excess(total + rotated[-1][last])
        if excess < least:
            least, best = excess, [0, *turns, last]
    return best


def _one_at_a_time(rotated: Sequence[npt.NDArray[np.float64]]) -> list[int]:
    best = [0] * len(rotated)
    total = rotated[0][0].copy()
    for job in range(1, len(rotated)):
        best[job] = _least(total, rotated[job])
        total += rotated[job][best[job]]
    moved = True
    while moved:
        moved = False
        for job in range(1, len(rotated)):
            total -= rotated[job][best[job]]
            turn = _least(total, rotated[job])
            if _excess(total + rotated[job][turn]) < _excess(total + rotated[job][best[job]]) - 1e-9:
                best[job], moved = turn, True
            total += rotated[job][best[job]]
    return best


def _least(total: npt.NDArray[np.float64], turns: npt.NDArray[np.float64]) -> int:
    """Return the turn with the least excess over a link that carries ``total`` already."""
    return int(((total + turns - 1).clip(min=0).sum(axis=1)).round(9).argmin())


def _row(turns: npt.NDArray[np.float64], turn: int) -> npt.NDArray[np.float64]:
    row: npt.NDArray[np.float64] = turns[turn]
    return row


def _excess(total: npt.NDArray[np.float64]) -> float:
    """Return the sum over angles of the demand above the capacity, rounded so that equal sums tie."""
    return round(float((total - 1).clip(min=0).sum()), 9)


def _grains(seconds: float) -> int:
    return max(round(seconds / GRAIN_S), 1)


def _modulo(time: float, cycle: float) -> float:
    """Return ``time`` modulo ``cycle``, 0 where rounding makes it just less than one."""
    rest = time % cycle
    return 0.0 if cycle - rest < GRAIN_S * 1e-6 else rest
