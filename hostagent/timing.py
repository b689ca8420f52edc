"""What an iteration is made of: its time, its share of communication and of computation, and its slack.

All of it is measured, nothing configured: iterations are stamped as the job's log tells them, communication
is the bursts in which its flows send. Pure functions of these two; `hostagent.timing_bursts` finds the bursts
and `hostagent.timing_recorder` keeps both for each job.

*Communication* is the time of an iteration during which bursts are sent, *computation* the rest. Where the
two overlap, that is communication.

*Slack* is how long a communication can wait without making the iteration longer. It cannot be seen while
nothing makes it wait; contention does, now and then. Each iteration ends some time after its last burst (the
optimizer's step, the log line, and what the computation still took). When a burst is late by less than its
slack, the iteration ends when it would have anyway: that time shrinks by the delay. So the largest delay that
an iteration of ordinary length is seen to have absorbed is a lower bound of the slack. Once longer iterations
are seen whose last bursts were no more delayed than that allows, there is no more, and the bound is
*confirmed*. Damaged and unlike iterations (evaluation sends at other times) must not invent slack, so the
bound is what at least SEEN iterations absorbed, less the resolution of the measurement.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import NamedTuple

from leveller.robust import estimate

TOLERANCE = 0.05
"""An iteration up to so much longer than the median is of ordinary length."""

SEEN = 3
"""Iterations that must have absorbed a delay for it to count."""

LEAST = 5
"""Iterations without which nothing is said."""

RESOLVED = 3
"""An iteration must be so many times as long as the resolution for its communication to be told."""


class Iteration(NamedTuple):
    """A completed iteration: monotonic time of its end, and how long it took."""

    end_ns: int
    duration_ns: int


class Burst(NamedTuple):
    """A time in which a job's flows sent without a pause (monotonic)."""

    start_ns: int
    end_ns: int
    bytes_sent: int


@dataclass(frozen=True, slots=True)
class Timing:
    """What an iteration of a job is made of, in nanoseconds; None: not to be told."""

    iteration_ns: int
    spread_ns: int
    """Of the iterations' durations, one standard deviation as robust statistics estimate it."""
    count: int
    """Iterations that this is of."""
    confidence: float
    """How far to trust ``iteration_ns``, see `leveller.robust.Estimate`."""
    communication_ns: int | None = None
    slack_ns: int | None = None
    slack_confirmed: bool = False
    """False: the slack is at least that."""
    bursts: int = 0
    """In an iteration of ordinary length; 0: not to be told."""


def measure(iterations: Sequence[Iteration], bursts: Sequence[Burst], resolution_ns: int) -> Timing | None:
    """Return what ``iterations`` are made of; None where they are too few.

    Both are in order of time; ``resolution_ns`` is how exactly the bursts' starts are known.
    """
    if len(iterations) < LEAST:
        return None
    durations = estimate([iteration.duration_ns for iteration in iterations])
    bursts = list(bursts)
    length_ns = round(durations.value)
    timing = Timing(length_ns, round(durations.spread), durations.count, durations.confidence)
    if not bursts or length_ns < RESOLVED * resolution_ns:
        return timing
    covered = [
        (iteration, inside)
        for iteration in iterations
        if iteration.end_ns - iteration.duration_ns >= bursts[0].start_ns - length_ns
        and (inside := _inside(iteration, bursts))
    ]
    if len(covered) < LEAST:
        return timing
    ordinary_ns = length_ns * (1 + TOLERANCE)
    ordinary = [inside for iteration, inside in covered if iteration.duration_ns <= ordinary_ns]
    sent = [sum(burst.end_ns - burst.start_ns for burst in inside) for inside in ordinary]
    gaps = [(iteration.duration_ns, iteration.end_ns - inside[-1].end_ns) for iteration, inside in covered]
    slack_ns, confirmed = slack(gaps, ordinary_ns, resolution_ns)
    return Timing(
        timing.iteration_ns,
        timing.spread_ns,
        timing.count,
        timing.confidence,
        min(length_ns, round(median(sent))) if sent else None,
        slack_ns,
        confirmed,
        ceil(median(map(len, ordinary))) if ordinary else 0,
    )


def slack(gaps: Sequence[tuple[int, int]], ordinary_ns: float, resolution_ns: int) -> tuple[int, bool]:
    """Return the slack (ns) that ``gaps`` show, and whether there is no more.

    Each is an iteration's duration and the time from the end of its last burst to its own end; iterations up
    to ``ordinary_ns`` are of ordinary length.
    """
    ordinary = [gap for duration, gap in gaps if duration <= ordinary_ns]
    if len(ordinary) < LEAST:
        return 0, False
    usual = median(ordinary)
    absorbed = sorted(usual - gap for gap in ordinary)[-SEEN]
    found = max(0, round(absorbed) - resolution_ns)
    # Late by more than the slack, an iteration is longer, and no more of its gap is gone than the slack.
    stalled = [usual - gap for duration, gap in gaps if duration > ordinary_ns]
    late = [absorbed for absorbed in stalled if absorbed > found - resolution_ns]
    confirmed = len(late) >= SEEN and max(late) <= found + 2 * resolution_ns
    return found, confirmed


def _inside(iteration: Iteration, bursts: Sequence[Burst]) -> list[Burst]:
    """Return the parts of ``bursts`` that lie in ``iteration``."""
    start_ns = iteration.end_ns - iteration.duration_ns
    first = bisect_left(bursts, start_ns, key=lambda burst: burst.end_ns)
    found: list[Burst] = []
    for burst in bursts[first:]:
        if burst.start_ns >= iteration.end_ns:
            break
        found.append(
            Burst(max(burst.start_ns, start_ns), min(burst.end_ns, iteration.end_ns), burst.bytes_sent)
        )
    return found
