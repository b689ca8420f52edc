"""What agents measure of a job's iterations, as policies and the data plane want it. Pure functions.

An agent tells how long a job's flows send in an iteration, and for how long they do not. The latter stays the
same under contention, the former does not: so where T_ideal is known, communication alone is what of it is
not computing.
"""

from __future__ import annotations

from typing import NamedTuple

from controlplane.reports import Timing

MOST_SLACK = 0.5
"""The part of an iteration alone that a burst may wait at most."""
MAX_SLACK_US = 2**32 - 1
"""The data plane's field has 32 bits."""


class Shares(NamedTuple):
    """Seconds of an iteration alone; 0: unknown."""

    compute_s: float = 0.0
    comm_s: float = 0.0

    def intensity(self, ranks: int) -> float:
        """Return Crux's intensity: the ``ranks``' computing per second of communication; 0: unknown."""
        return _two_digits(max(ranks, 1) * self.compute_s / self.comm_s) if self.comm_s else 0.0


def shares(timing: Timing | None, t_ideal_ns: int | None) -> Shares:
    """Return what an iteration of the job is made of when it is alone, as far as it has been measured."""
    if timing is None or timing.communication_ns is None:
        return Shares()
    compute_ns = timing.iteration_ns - timing.communication_ns
    comm_ns = timing.communication_ns
    if t_ideal_ns is not None and t_ideal_ns > compute_ns:
        comm_ns = min(comm_ns, t_ideal_ns - compute_ns)
    return Shares(_two_digits(compute_ns / 1e9), _two_digits(comm_ns / 1e9))


def slack_ns(timing: Timing | None, before_ns: int) -> int:
    """Return for how long each burst of the job may wait; ``before_ns`` is what was known before.

    Only a confirmed slack counts: iterations that were late by more have been seen to take longer. It is
    shared out among an iteration's bursts, which may each wait for so long one after the other. While bursts
    wait, less slack is left to be seen, but that is confirmed only by iterations that take longer; so it is
    kept, and goes where it does harm.
    """
    if timing is None or timing.slack_ns is None or not timing.slack_confirmed:
        return before_ns
    return timing.slack_ns // timing.bursts if timing.bursts else 0


def slack_us(slack_ns: int, iteration_ns: float | None) -> int:
    """Return the slack to install, in whole milliseconds; 0 where an iteration's time is not known.

    No more than half of an iteration alone, whatever is told, nor than switches have room for.
    """
    longest_us = min(round(MOST_SLACK * (iteration_ns or 0) / 1000), MAX_SLACK_US)
    return min(slack_ns // 1000, longest_us) // 1000 * 1000


def _two_digits(value: float) -> float:
    """Round: it is no more exact, and what changes no further changes no order."""
    return float(f"{value:.2g}")
