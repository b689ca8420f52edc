"""How fast something may go on, on the average over a while."""

from __future__ import annotations

import time
from collections.abc import Callable


class Pace:
    """A budget of seconds that fills by itself: a second's worth each second, ``burst_s`` at most."""

    def __init__(self, burst_s: float, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._burst_s = burst_s
        self._clock_s = clock_s
        self._spent_until_s = float("-inf")

    def spend(self, cost_s: float) -> None:
        """Take ``cost_s`` out of the budget, which may owe then."""
        self._spent_until_s = max(self._spent_until_s, self._clock_s() - self._burst_s) + cost_s

    @property
    def wait_s(self) -> float:
        """How long it takes until nothing is owed; 0: now."""
        return max(self._spent_until_s - self._clock_s(), 0.0)
