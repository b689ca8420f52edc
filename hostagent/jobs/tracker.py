"""Jobs out of processes: who is in them, how far they are by their own logs, when they end."""

from __future__ import annotations

import os
import stat
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from hostagent.jobs.processes import TrainingProcess
from hostagent.logs.counter import IterationCounter
from hostagent.logs.format import Mark
from hostagent.logs.reader import LogReader
from hostagent.logs.tail import Identity
from hostagent.logs.watch import Watcher

FRESH_NS = 2 * 10**9
"""A process younger than this has hardly logged an iteration: what it appends to is an earlier run's log."""


GONE = ""
"""Path of a log that nobody writes any more."""


class Progress(NamedTuple):
    """What a job's log gained: the durations (ns) of the iterations completed, oldest first."""

    job: TrackedJob
    durations_ns: list[int]


@dataclass(slots=True)
class TrackedJob:
    """One job as this host sees it."""

    id: str
    started_ns: int
    world_size: int = 0
    local_ranks: int = 0
    counter: IterationCounter = field(default_factory=IterationCounter)
    _readers: list[LogReader] = field(default_factory=list)
    _leader: LogReader | None = None

    @property
    def log_format(self) -> str:
        """Name of the log's format; empty where no log on this host has iterations."""
        return self._leader.format if self._leader else ""

    @property
    def log_path(self) -> str:
        """Where the log is read; empty where no log on this host has iterations."""
        return self._leader.path if self._leader else ""

    def rejected(self) -> Counter[str]:
        """Return how many lines were not believed, by reason."""
        total = Counter(self.counter.rejected)
        for reader in self._readers:
            total.update(reader.rejected)
            total["line too long"] += reader.lines_too_long
        return +total

    @property
    def behind(self) -> bool:
        """There is more in the logs than one read takes."""
        return any(reader.behind for reader in self._readers)

    def update(self, processes: Collection[TrainingProcess], proc: str, watcher: Watcher | None) -> None:
        """Take in the job's present processes: ranks, and stdouts that are regular files."""
        self.world_size = max(process.rank.world_size for process in processes)
        self.local_ranks = len({process.rank.rank for process in processes})
        logs: dict[Identity, tuple[str, os.stat_result, TrainingProcess]] = {}
        for process in processes:
            path = f"{proc}/{process.pid}/fd/1"
            try:
                found = os.stat(path)
            except OSError:
                continue
            if stat.S_ISREG(found.st_mode):
                logs.setdefault((found.st_dev, found.st_ino), (path, found, process))
        present = {f"{proc}/{process.pid}/fd/1" for process in processes}
        for reader in list(self._readers):
            if reader.identity is not None and (same := logs.pop(reader.identity, None)):
                reader.path = same[0]  # the process by which it was opened may have gone
            elif reader.path not in present:
                # Its pid may be another process's by now. What the leader has open is read to its end.
                reader.path = GONE
                if reader is not self._leader:
                    reader.close()
                    self._readers.remove(reader)
        paths = {reader.path for reader in self._readers}
        for path, found, process in logs.values():
            if path not in paths:  # else its reader is about to see that another file is there
                old = _is_old(found, process, _appends(proc, process.pid))
                self._readers.append(LogReader(path, found.st_size if old else 0, watcher))

    def read(self, now_ns: int) -> list[int] | None:
        """Read the logs; return the durations of iterations completed, None where nothing new counts.

        Several ranks may log the same iterations: only the first log that has any is used, until it is silent
        because its process has gone and another goes on.
        """
        before = (self.counter.iterations, self.counter.last_ns)
        durations: list[int] = []
        for reader in self._readers:
            marks = reader.read()
            if marks and (self._leader is None or self._leader.path == GONE):
                self._leader = reader
            if reader is self._leader:
                durations += self._count(marks, now_ns)
        return durations if (self.counter.iterations, self.counter.last_ns) != before else None

    def close(self) -> None:
        """Close the logs."""
        for reader in self._readers:
            reader.close()

    def _count(self, marks: list[Mark], now_ns: int) -> list[int]:
        return [duration for mark in marks for duration in self.counter.see(mark, now_ns)]


class JobTracker:
    """The jobs on this host."""

    def __init__(self, proc: str, watcher: Watcher | None = None) -> None:
        """``proc`` is where their processes' files are; ``watcher`` tells when their logs grow."""
        self._proc = proc
        self._watcher = watcher
        self.jobs: dict[str, TrackedJob] = {}

    def update(self, processes: Collection[TrainingProcess]) -> list[TrackedJob]:
        """Take in the training processes of now; return the jobs that have ended, which are forgotten.

        A job ends here when it has no process left on this host; its logs are read to their end first.
        """
        by_job: dict[str, list[TrainingProcess]] = {}
        for process in processes:
            by_job.setdefault(process.rank.job, []).append(process)
        for id_, members in by_job.items():
            job = self.jobs.get(id_)
            if job is None:
                job = self.jobs[id_] = TrackedJob(id_, min(process.started_ns for process in members))
            job.update(members, self._proc, self._watcher)
        ended = [job for id_, job in self.jobs.items() if id_ not in by_job]
        for job in ended:
            del self.jobs[job.id]
            job.read(time.monotonic_ns())
            job.close()
        return ended

    def read(self, now_ns: int) -> list[Progress]:
        """Read every job's logs; return the jobs that got on."""
        return [
            Progress(job, durations)
            for job in self.jobs.values()
            if (durations := job.read(now_ns)) is not None
        ]


def _appends(proc: str, pid: int) -> bool:
    """Say whether the process's stdout is open for appending (``>>``)."""
    try:
        with open(f"{proc}/{pid}/fdinfo/1", encoding="ascii") as file:
            flags = next((line for line in file if line.startswith("flags:")), "flags: 0")
    except OSError:
        return False
    return bool(int(flags.split()[1], 8) & os.O_APPEND)


def _is_old(log: os.stat_result, process: TrainingProcess, appends: bool) -> bool:
    """Say whether what is in ``log`` now was written by an earlier run, not by ``process``."""
    now_ns = time.monotonic_ns()
    if appends and now_ns - process.started_ns < FRESH_NS:
        return True
    started = time.time_ns() - (now_ns - process.started_ns)
    return log.st_mtime_ns < started - 2 * 10**8
