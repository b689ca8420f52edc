"""What may never come back is done in a thread of its own, which is waited for only so long.

A file system may stop to answer: NFS whose server is gone, a tenant's own FUSE. Whoever asks for one of its
files then hangs in the kernel, and neither a signal nor O_NONBLOCK helps. So all that touches a job's logs is
done in the job's lane: the caller waits a little, which nearly always is enough, and else goes on without.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")

WAIT_S = 0.1
"""So long an answer is waited for, and longer only while the thread is busy itself."""

BUSY_NS = 1_000_000
"""Who takes so much CPU time in WAIT_S is busy, and does not hang."""

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

        It goes on all the same then, and its result is lost. HangingError, too, where no thread can be had.
        """
        if self.hangs:
            raise HangingError
        call = _Call(work)
        thread = self._thread or self._begin()
        used_ns = _cpu_ns(thread)
        self._calls.put(call)
        while not call.is_done(WAIT_S):
            # Not its state: who waits for the GIL is asleep, as who hangs is.
            before_ns, used_ns = used_ns, _cpu_ns(thread)
            if used_ns - before_ns < BUSY_NS:
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
        if self._late is not None or not call.is_done(WAIT_S):
            self._late = call  # it hangs until that is done

    def _begin(self) -> threading.Thread:
        # A daemon: where it hangs for ever, the process is to end all the same.
        thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            raise HangingError from None  # there are too many threads
        self._thread = thread
        return thread

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call.carry_out()
            self.cpu_ns = time.thread_time_ns()
            call.finish()


def _cpu_ns(thread: threading.Thread) -> int:
    """Return the CPU time that ``thread``, which must be there, has taken so far."""
    assert thread.ident is not None
    return time.clock_gettime_ns(time.pthread_getcpuclockid(thread.ident))
