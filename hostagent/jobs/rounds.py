"""One thing done for several jobs, one after the other, in a lane that they share while all answer."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from hostagent.jobs.job import TrackedJob


class Round:
    """Give `go` to a `hostagent.lane.Lane`; where that raises HangingError, `abandon` it."""

    def __init__(
        self, jobs: Iterable[TrackedJob], work: Callable[[TrackedJob], object], budget_ns: int
    ) -> None:
        """``budget_ns``: CPU time after which it ends, with some jobs left."""
        self.left = deque(jobs)
        """Those that have not had their turn."""
        self.done: list[TrackedJob] = []
        self.failed: list[tuple[TrackedJob, Exception]] = []
        self._work = work
        self._budget_ns = budget_ns
        self._at: TrackedJob | None = None
        self._abandoned = False
        self._lock = threading.Lock()

    def go(self) -> None:
        """Do the work for one job after the other, whatever it raises."""
        until_ns = time.thread_time_ns() + self._budget_ns
        while (job := self._next()) is not None:
            try:
                self._work(job)
            except Exception as error:  # noqa: BLE001 (`failed` has it)
                self.failed.append((job, error))
            else:
                self.done.append(job)
            if time.thread_time_ns() >= until_ns:
                return

    def abandon(self) -> TrackedJob | None:
        """End it with the job whose turn it is, and return that: it is what hangs. None: it has come back."""
        with self._lock:
            self._abandoned = True
            return self._at

    def _next(self) -> TrackedJob | None:
        with self._lock:
            self._at = self.left.popleft() if self.left and not self._abandoned else None
            return self._at
