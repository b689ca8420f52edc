"""What may never come back is done in a thread of its own, which is waited for only so long.

A file system may stop to answer: NFS whose server is gone, a tenant's own FUSE. Whoever asks for one of its
files then hangs in the kernel, and neither a signal nor O_NONBLOCK helps. So all that touches a job's logs is
done in the job's lane: the caller waits a little, which nearly always is enough, and else goes on without.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")

WAIT_S = 0.1
"""So long an answer is waited for, and longer only while the thread is busy itself."""

REST_NS = 10 * 10**9
"""After an answer that came late nothing is asked for so long: who is always slow takes 1 % of the time."""


class HangingError(Exception):
    """There is no answer yet, or there was none in time lately."""


class _Call(Generic[T]):
    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._done = threading.Lock()
        self._done.acquire()
        self._result: T
        self._error: Exception | None = None

    def carry_out(self) -> None:
        try:
            self._result = self._work()
        except Exception as error:  # noqa: BLE001 (whose it is, `result` says)
            self._error = error

    def finish(self) -> None:
        self._done.release()

    def is_done(self, wait_s: float) -> bool:
        return self._done.acquire(timeout=wait_s)

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._result


class Lane:
    """Does one thing at a time, in a thread of its own, which begins with the first. Close it when done."""

    def __init__(self, name: str) -> None:
        """``name`` is the thread's, for people."""
        self._name = name
        self._calls: SimpleQueue[_Call[Any] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._late: _Call[Any] | None = None
        self._rests_until_ns = 0
        self.cpu_ns = 0
        """CPU time that was taken so far."""

    @property
    def hangs(self) -> bool:
        """Say whether nothing can be done in it now; what came back late is done."""
        if self._late is not None and self._late.is_done(0):
            self._late = None
            self._rests_until_ns = time.monotonic_ns() + REST_NS
        return self._late is not None or time.monotonic_ns() < self._rests_until_ns

    def run(self, work: Callable[[], T]) -> T:
        """Return what ``work`` returns. Raises what it raises, and HangingError where it does not come back.

        It goes on all the same then, and its result is lost.
        """
        if self.hangs:
            raise HangingError
        call = _Call(work)
        if self._thread is None:
            # A daemon: where it hangs for ever, the process is to end all the same.
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        self._calls.put(call)
        while not call.is_done(WAIT_S):
            if not self._is_busy():
                self._late = call
                raise HangingError
        return call.result()

    def close(self, last: Callable[[], object]) -> None:
        """Do ``last`` and end the thread: soon, or when it comes back."""
        if self._thread is None:
            last()
            return
        call = _Call(last)
        self._calls.put(call)
        self._calls.put(None)
        if self._late is None:
            call.is_done(WAIT_S)

    def _is_busy(self) -> bool:
        """Say whether the thread takes the processor, or waits for it."""
        assert self._thread is not None
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/self/task/{self._thread.native_id}/stat").read_text()
            return stat.rpartition(")")[2].split()[0] == "R"
        return False

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call.carry_out()
            self.cpu_ns = time.thread_time_ns()
            call.finish()
