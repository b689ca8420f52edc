"""Many runs on all cores, kept in a file as they end: a sweep that was stopped goes on where it was."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import IO, Any

from leveller.errors import UserError
from simulator.compare import FIGURES
from simulator.fabric import Fabric
from simulator.grid import Point, name
from simulator.run import simulate
from simulator.scenario import LingjunFabric, Scenario
from simulator.workload import Workload

Figures = Mapping[str, Any]
"""Of a run: `FIGURES`, events, and its jobs, as ``leveller sim --json`` has them, without ``wall_s``."""


@dataclass(frozen=True, slots=True)
class Row:
    """A point and what came of it."""

    point: Point
    figures: Figures

    def as_json(self) -> dict[str, Any]:
        """Return the row as it is stored and printed."""
        point = self.point
        return {"policy": point.policy, "settings": dict(point.settings), "seed": point.seed, **self.figures}


class Store:
    """The file of a sweep: a header, then a line of JSON per run. It is locked while in use.

    Raises UserError for a file of another scenario or another version of the code, for one that another sweep
    is writing, and for one that cannot be written.
    """

    def __init__(self, path: Path, digest: str) -> None:
        self._path = path
        self._header = json.dumps({"leveller_sweep": digest}) + "\n"
        try:
            self._file: IO[bytes] = path.open("a+b")
        except OSError as error:
            raise UserError(
                f"{path} cannot be written ({error.strerror})", "give --out another file"
            ) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(
                f"{path} is in use by another sweep", "wait for it, or give another file"
            ) from None
        self.rows = self._read()

    def _read(self) -> dict[str, Row]:
        self._file.seek(0)
        text = self._file.read()
        whole = text[: text.rfind(b"\n") + 1]  # what comes after was being written when the sweep was killed
        lines = whole.splitlines(keepends=True)
        if not lines:
            self._file.truncate(0)
            self._file.write(self._header.encode())
            self._file.flush()
            return {}
        if lines[0] != self._header.encode():
            what = f"{self._path} is not a sweep of this scenario by this version of leveller"
            raise UserError(what, "give --out another file, or remove it")
        self._file.truncate(len(whole))
        found = {}
        for line in lines[1:]:
            fields = json.loads(line)
            point = Point(fields.pop("policy"), fields.pop("settings"), fields.pop("seed"))
            found[point.key] = Row(point, fields)
        return found

    def add(self, row: Row) -> None:
        """Keep a row, whatever happens next."""
        self._file.write(json.dumps(row.as_json()).encode() + b"\n")
        self._file.flush()
        self.rows[row.point.key] = row

    def close(self, order: Sequence[Point]) -> None:
        """Put the rows in the sweep's order, those of other points after them, and let the file go."""
        rest = dict(self.rows)
        rows = [rest.pop(point.key) for point in order if point.key in rest]
        rows += [rest[key] for key in sorted(rest)]
        new = self._path.with_name(self._path.name + ".new")
        new.write_text(self._header + "".join(json.dumps(row.as_json()) + "\n" for row in rows))
        new.replace(self._path)
        self._file.close()


def digest(path: Path, scenario: Scenario) -> str:
    """Return what decides a run's result besides its point: the scenario's files and our own sources."""
    ours = Path(__file__).parent
    sources = sorted([*ours.rglob("*.py"), *(ours.parent / "controlplane").rglob("policies/*.py")])
    files = [path]
    if isinstance(scenario.fabric, LingjunFabric):
        files.append(path.parent / scenario.fabric.topo)
    if scenario.workload is not None and not isinstance(scenario.workload, Workload):
        files += scenario.workload.within(path.parent).files
    whole = hashlib.sha256()
    for file in (*sources, *files):
        whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()[:16]


def sweep(
    todo: Sequence[Point],
    variants: Mapping[str, tuple[Scenario, Fabric]],
    workers: int,
    store: Store | None,
    done: Callable[[Row], object],
) -> list[Row]:
    """Run the points, those that ``store`` has not yet, and return all rows in the points' order.

    A point's result does not depend on ``workers``, nor on what ran before it. ``done`` is told each row.
    """
    rows = dict(store.rows) if store else {}
    for point in todo:
        if point.key in rows:
            done(rows[point.key])
    left = [point for point in todo if point.key not in rows]
    for row in _run_all(left, variants, workers):
        rows[row.point.key] = row
        if store:
            store.add(row)
        done(row)
    if store:
        store.close(todo)
    return [rows[point.key] for point in todo]


def _run_all(
    left: Sequence[Point], variants: Mapping[str, tuple[Scenario, Fabric]], workers: int
) -> Iterator[Row]:
    if workers == 1 or len(left) < 2:
        for point in left:
            yield _run(point, *variants[name(point.settings)])
        return
    waiting = iter(left)
    size = min(workers, len(left))
    with ProcessPoolExecutor(size, get_context("spawn"), _end_with_parent) as pool:
        running = set()
        try:
            while True:
                # Two per worker: enough that none waits, and little is lost when the sweep is stopped.
                for point in waiting:
                    running.add(pool.submit(_run, point, *variants[name(point.settings)]))
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


def _end_with_parent() -> None:
    """End this worker when the sweep is killed, which would leave it waiting for work for ever."""
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run(point: Point, scenario: Scenario, fabric: Fabric) -> Row:
    figures = simulate(scenario, fabric, point.policy, point.seed).as_json()
    return Row(point, {key: figures[key] for key in (*FIGURES, "events", "jobs")})


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))
