"""A sweep's runs on the cores of this machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process

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
        with ProcessPoolExecutor(min(workers, len(points)), get_context("spawn"), _end_with_parent) as pool:
            running: set[Future[Row]] = set()
            waiting = iter(points)
            try:
                while True:
                    # Two per worker: enough that none waits, and little is lost when the sweep is stopped.
                    for point in waiting:
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
                pool.shutdown(wait=True, cancel_futures=True)

    return run


def _end_with_parent() -> None:
    """End this worker when the sweep is killed, which would leave it waiting for work for ever."""
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))
