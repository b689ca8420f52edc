"""How often recurring work runs, so that the agent stays a small guest on any host."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Pacer:
    """Spaces out one kind of work: at least ``interval_ns`` apart, and never above ``share`` of a core.

    Work that turns out costly (a host with ten thousand sockets) is done less often instead of taking more.
    Cost is CPU time of the calling thread, so that a busy machine does not make cheap work look dear.
    """

    def __init__(
        self,
        interval_ns: int,
        share: float,
        burst_ns: int = 0,
        cpu_ns: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        """``burst_ns``: time without work that may be made up for by runs that follow at once.

        ``cpu_ns`` tells the CPU time taken so far, where other threads do a part of the work.
        """
        self._cpu_ns = cpu_ns
        self._interval_ns = interval_ns
        self._burst_ns = burst_ns
        self._share = share
        self.due_ns = 0
        """Monotonic time before which the work is not due."""

    def due(self, now_ns: int) -> bool:
        """Say whether the work may run at ``now_ns``."""
        return now_ns >= self.due_ns

    @contextmanager
    def run(self, now_ns: int) -> Iterator[None]:
        """Wrap one run of the work, begun at ``now_ns``."""
        begun = self._cpu_ns()
        try:
            yield
        finally:
            cost = self._cpu_ns() - begun
            begun_ns = max(self.due_ns, now_ns - self._burst_ns)
            self.due_ns = begun_ns + max(self._interval_ns, int(cost / self._share))
