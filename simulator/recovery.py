"""How long the jobs take to settle after another one has come, from R over time alone.

R is counted anew from the moment a newcomer starts: m(t) is the lowest R, over all jobs there, of what each
has done between then and t. What m is at the end of the time watched, which is the first departure or the
horizon, is what they have settled at. The recovery time is how long it takes until m is, for good, no more
than `WITHIN` below that. The window grows with t, so it has no width to choose, and what a ranking of once a
minute does to and fro averages out in it: the later, the longer tau is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.state import Floats

WITHIN = 0.05
"""The share of what it settles at that the lowest R may still lack."""

History = Sequence[tuple[float, Mapping[int, float]]]
"""(time, R so far of each job that has one, by number), by time."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """The lowest R, counted from an arrival, that jobs ``settled`` at, and how many ``seconds`` that took.

    Where a job did nothing at all (``settled`` is 0) it took all the time there was.
    """

    settled: float
    seconds: float


def recovery(history: History, starts: Mapping[int, float], arrival: float, end: float) -> Recovery | None:
    """Return the recovery from what came at ``arrival``, watched until ``end``.

    ``starts`` is when each of the jobs began that run from ``arrival`` to ``end``. None where ``history`` has
    nothing of that time.
    """
    times = np.array([time for time, _ in history if arrival < time <= end])
    if not len(times):
        return None
    done = [_done(history, job, start, np.append(times, arrival)) for job, start in starts.items()]
    lowest = np.min([(one[:-1] - one[-1]) / (times - arrival) for one in done], axis=0)
    settled = float(lowest[-1])
    if settled == 0:
        return Recovery(0.0, float(times[-1] - arrival))
    short = np.flatnonzero(lowest < (1 - WITHIN) * settled)
    return Recovery(settled, float(times[short[-1] + 1] - arrival) if len(short) else 0.0)


def _done(history: History, job: int, start: float, at: Floats) -> Floats:
    """Return how many ideal seconds of iterations ``job`` has done by each time of ``at``.

    They come in steps of an iteration; between two steps they are taken to grow evenly, or the first seconds
    would be all rounding.
    """
    times, done = [start], [0.0]
    for time, rates in history:
        so_far = rates.get(job, 0.0) * (time - start)
        if so_far > done[-1] * (1 + 1e-9):
            times.append(time)
            done.append(so_far)
    return np.interp(at, times, done)
