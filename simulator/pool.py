"""A sweep's runs on the cores of this machine."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from types import FrameType
from typing import NoReturn

from leveller.errors import UserError
from simulator.grid import Point, name
from simulator.store import Row
from simulator.sweep import Runner, Variants, here, run_point


def on_cores(workers: int) -> Runner:
    """Return what runs points in ``workers`` processes; one is this process itself.

    Raises UserError, while it runs, when one of them dies.
    """
    if workers == 1:
        return here

    def run(points: Sequence[Point], variants: Variants) -> Iterator[Row]:
        context = get_context("spawn")
        ends, end = context.Pipe(duplex=False)
        count = min(workers, len(points))
        with ends, end, ProcessPoolExecutor(count, context, _end_with, (ends,)) as pool:
            running: set[Future[Row]] = set()
            waiting = iter(points)
            try:
                while True:
                    # Two per worker: enough that none waits, and little is lost when the sweep is stopped.
                    for point in waiting:
                        with _without_interrupts():
                            running.add(pool.submit(run_point, point, *variants[name(point.settings)]))
                        if len(running) >= 2 * workers:
                            break
                    if not running:
                        return
                    ended, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in ended:
                        yield future.result()
            except BrokenProcessPool:
                what = "a worker process died, perhaps for want of memory"
                raise UserError(
                    what, "run it again with fewer --workers: with --out it goes on where it was"
                ) from None
            finally:
                end.close()  # what still runs is of no use: nobody waits for it
                pool.shutdown(wait=True, cancel_futures=True)

    return run


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start workers that never see Ctrl-C, which a terminal sends to them too: the sweep ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with(ends: Connection) -> None:
    """End this worker when the sweep closes the other end, or is killed; it may be in the middle of a run."""

    def watch() -> None:
        connection.wait([ends])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Have SIGTERM end what runs inside as Ctrl-C does, with the exit code that shells have for it."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))
