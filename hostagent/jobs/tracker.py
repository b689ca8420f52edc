"""The jobs on this host: out of processes, until they end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Generator, Iterator, Sequence
from typing import NamedTuple

import structlog

from hostagent.jobs.exits import ExitWatch
from hostagent.jobs.health import Health, Patience, verdict
from hostagent.jobs.job import TrackedJob
from hostagent.jobs.processes import TrainingProcess, start_ticks
from hostagent.jobs.sources import Source, SourceFinder
from hostagent.logs import FORMATS
from hostagent.logs.format import LogFormat
from hostagent.logs.watch import Watcher
from hostagent.memory import JobMemory

RESTART_NS = 120 * 10**9
"""How long a launcher may take to start a job again that has died: later it is taken for another."""

SEARCH_NS = 20_000_000
"""CPU time that one step of a search for logs may take: the agent's one thread has more to do."""

READ_NS = 100_000_000
"""CPU time after which reading logs stops, and goes on at the next call with the jobs that are left."""

_NO_PROCESS = 1
"""Pid of the process that orphans are given to: no launcher."""


class Progress(NamedTuple):
    """What a job's log gained: the durations (ns) of the iterations completed, oldest first."""

    job: TrackedJob
    durations_ns: list[int]


class JobTracker:
    """Keeps the jobs on this host. Close it when done."""

    def __init__(
        self,
        proc: str,
        watcher: Watcher | None = None,
        formats: Sequence[LogFormat] = FORMATS,
        patterns: Sequence[str] = (),
        patience: Patience | None = None,
        memory: Sequence[JobMemory] = (),
    ) -> None:
        """``proc`` is where their processes' files are; ``watcher`` tells when their logs grow.

        ``patterns`` name logs, as `hostagent.jobs.sources.SourceFinder` takes them. ``memory`` is of the jobs
        that an agent before this one has kept: those that are still there, or are started again by the same
        launcher, go on where they were.
        """
        self._proc = proc
        self._watcher = watcher
        self._formats = formats
        self._finder = SourceFinder(proc, patterns)
        self._patience = patience or Patience()
        self._search: Generator[tuple[str, Source] | None, None, None] | None = None  # that goes on
        self._unread: list[TrackedJob] = []
        self._exits = ExitWatch(proc)
        self._said: set[str] = set()  # jobs that have gone wrong
        self._log = structlog.get_logger()
        self._waiting: dict[str, TrackedJob] = {}  # that have died, and whose launcher may start them again
        for kept in memory:
            self._waiting[kept.id] = job = TrackedJob.recalled(kept, formats)
            job.over_ns = time.monotonic_ns()
        self.jobs: dict[str, TrackedJob] = {}

    def close(self) -> None:
        """Close every log."""
        for job in (*self.jobs.values(), *self._waiting.values()):
            job.close()
        self.jobs.clear()
        self._waiting.clear()
        if self._search is not None:
            self._search.close()
        self._exits.close()

    def update(self, processes: Collection[TrainingProcess]) -> list[TrackedJob]:
        """Take in the training processes of now; return the jobs that are over, which are forgotten.

        A job is over here when it has no process left on this host; its logs are read to their end first. One
        that has died and is started again by the same launcher (an elastic restart) goes on where it was.
        """
        by_job: dict[str, list[TrainingProcess]] = {}
        for process in processes:
            by_job.setdefault(process.rank.job, []).append(process)
            self._exits.watch(process.pid)
        over = [job for name, job in self.jobs.items() if name not in by_job]
        for job in self.jobs.values():
            self._note_exits(job, by_job.get(job.id, ()))
        for job in over:
            self._end(job)
        for name, members in by_job.items():
            job = self.jobs.get(name) or self._again(name, members) or self._begin(name, members)
            with self._apart(job):
                job.update(members, self._proc, self._watcher)
        self._give_up()
        self._said &= self.jobs.keys() | self._waiting.keys()
        return over

    def remember(self) -> list[JobMemory]:
        """Return what is to be kept of the jobs while there is no agent; what cannot be kept is left out."""
        kept: list[JobMemory] = []
        for job in (*self.jobs.values(), *self._waiting.values()):
            with self._apart(job):
                kept.append(job.remember())
        return kept

    def search(self, now_ns: int) -> bool:
        """Search for the logs of jobs that have shown none yet; say whether there was any to search for.

        A call takes SEARCH_NS of CPU time at most, and the next one goes on: a host may have any number of
        open files.
        """
        if self._search is None:
            lacking = {
                name: list(job.processes.values())
                for name, job in self.jobs.items()
                if job.wants_search(now_ns)
            }
            if not lacking:
                return False
            self._search = self._finder.search(lacking)
        until_ns = time.thread_time_ns() + SEARCH_NS
        for found in self._search:
            if found is not None and (job := self.jobs.get(found[0])) is not None:
                with self._apart(job):
                    job.follow([found[1]], self._proc, self._watcher)
            if time.thread_time_ns() >= until_ns:
                return True
        self._search = None
        return True

    def tell(self, pid: int, first: str, now: str) -> bool:
        """Take in what process ``pid`` says of its progress; say whether it is in a job."""
        job = next((job for job in self.jobs.values() if pid in job.processes), None)
        if job is not None:
            job.tell(first, now)
        return job is not None

    @property
    def behind(self) -> bool:
        """There is more in the logs than one call of `read` takes."""
        return bool(self._unread) or any(job.behind for job in self.jobs.values())

    def read(self, now_ns: int) -> list[Progress]:
        """Read the logs; return the jobs that got on.

        Lines that are dear to look at must not keep the agent from other jobs and from all else.
        """
        left = [job for job in self._unread if self.jobs.get(job.id) is job]
        left += [job for job in self.jobs.values() if job not in left]
        until_ns = time.thread_time_ns() + READ_NS
        got: list[Progress] = []
        while left:
            job = left.pop(0)
            with self._apart(job):
                if (durations := job.read(now_ns)) is not None:
                    got.append(Progress(job, durations))
            if time.thread_time_ns() >= until_ns:
                break
        self._unread = left
        return got

    def check(self, now_ns: int) -> list[TrackedJob]:
        """Return the jobs that have begun to hang, or to go on. Logs must have been read before."""
        return [
            job
            for job in self.jobs.values()
            if not job.behind and job not in self._unread and job.check(now_ns, self._patience)
        ]

    def _begin(self, name: str, members: Collection[TrainingProcess]) -> TrackedJob:
        job = TrackedJob(name, min(process.started_ns for process in members), formats=self._formats)
        if (other := self._waiting.pop(name, None)) is not None:
            other.close()
        self.jobs[name] = job
        return job

    def _note_exits(self, job: TrackedJob, present: Collection[TrainingProcess]) -> None:
        left = {process.pid for process in present}
        main = {process.pid: process.rank.rank for process in job.main_processes()}
        for pid in job.processes.keys() - left:
            status = self._exits.status(pid)
            if pid in main:
                job.statuses[main[pid]] = status

    def _end(self, job: TrackedJob) -> None:
        del self.jobs[job.id]
        job.over_ns = time.monotonic_ns()
        with self._apart(job):
            job.read(job.over_ns)
        job.health, job.reason = verdict(
            job.statuses.values(), job.counter.value, job.counter.total, failed=job.failed
        )
        if job.health is Health.DIED and self._launched(job):
            self._waiting[job.id] = job
        else:
            job.close()

    @contextlib.contextmanager
    def _apart(self, job: TrackedJob) -> Iterator[None]:
        """Have what goes wrong with ``job`` be its own, and no other job's: it is said, once.

        A tenant writes its logs, and names its files, as it likes; whatever of that nobody has thought of
        must not end the agent, which has every tenant's jobs.
        """
        try:
            yield
        except Exception as error:  # noqa: BLE001
            if job.id not in self._said:
                self._said.add(job.id)
                self._log.error("part of a job cannot be followed or kept", job=job.id, error=repr(error))

    def _again(self, name: str, members: Collection[TrainingProcess]) -> TrackedJob | None:
        """Return the job that its launcher has started again, or that was there before the agent was."""
        job = self._waiting.get(name)
        if job is None:
            return None
        there = {(process.pid, process.ticks) for process in members}
        is_there = any((process.pid, process.ticks) in there for process in job.processes.values())
        if not (is_there or _launchers(job.processes.values()) & _launchers(members)):
            return None
        del self._waiting[name]
        job.health, job.reason = Health.RUNNING, ""
        job.statuses.clear()
        self.jobs[name] = job
        return job

    def _give_up(self) -> None:
        """Forget the jobs whose launcher is gone, too, or does nothing."""
        for name, job in list(self._waiting.items()):
            if not self._launched(job) or time.monotonic_ns() - job.over_ns > RESTART_NS:
                job.close()
                del self._waiting[name]

    def _launched(self, job: TrackedJob) -> bool:
        """Say whether its launcher is there, or one of its processes, which has not been found yet."""
        processes = job.processes.values()
        return any(start_ticks(self._proc, pid) is not None for pid in _launchers(processes)) or any(
            start_ticks(self._proc, process.pid) == process.ticks for process in processes
        )


def _launchers(processes: Collection[TrainingProcess]) -> set[int]:
    return {process.parent for process in processes if process.parent > _NO_PROCESS}
