"""The jobs on this host: out of processes, until they end."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import NamedTuple, TypeVar

import structlog

from hostagent.jobs.exits import ExitWatch
from hostagent.jobs.health import Health, Patience, verdict
from hostagent.jobs.job import TrackedJob
from hostagent.jobs.processes import TrainingProcess, start_ticks
from hostagent.jobs.rounds import Round
from hostagent.jobs.sources import Source, SourceFinder
from hostagent.lane import HangingError, Lane
from hostagent.logs import FORMATS
from hostagent.logs.format import LogFormat
from hostagent.logs.watch import Watcher
from hostagent.memory import JobMemory

T = TypeVar("T")

RESTART_NS = 120 * 10**9
"""How long a launcher may take to start a job again that has died: later it is taken for another."""

SEARCH_NS = 20_000_000
"""CPU time that one step of a search for logs may take: the agent has more to do."""

READ_NS = 100_000_000
"""CPU time after which reading logs stops, and goes on at the next call with the jobs that are left."""

MAX_HANGING = 8
"""Most threads that hang with one user's logs, those of jobs that are over included: each has cost a wait."""

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
        self._search: _Search | None = None  # that goes on
        self._lane = Lane("jobs' logs")
        self._searcher = Lane("search for logs")
        self._lost: dict[str, Lane] = {}  # searches that hang, by the job whose files they were looking at
        self._stuck: dict[Lane, int] = {}  # all lanes that hang, and with which user's logs
        self._crowded: set[int] = set()  # users of whom too many do
        self._unclosed: list[TrackedJob] = []  # jobs of those that are over
        self._got: SimpleQueue[Progress] = SimpleQueue()
        self._remembered: dict[str, JobMemory] = {}
        self._hanging: set[str] = set()  # jobs whose logs do not answer
        self.cpu_ns = 0
        """CPU time that the lanes have taken."""
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
            self._close(job)
        self.jobs.clear()
        self._waiting.clear()
        self._lane.close(_nothing)
        self._searcher.close(self._search.close if self._search is not None else _nothing)
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
        unclosed, self._unclosed = self._unclosed, []
        for job in unclosed:
            self._close(job)
        for name, members in by_job.items():
            job = self.jobs.get(name) or self._again(name, members) or self._begin(name, members)
            job.update(members)
        self._each(self.jobs.values(), lambda job: job.follow_outputs(self._proc, self._watcher))
        self._give_up()
        known = self.jobs.keys() | self._waiting.keys()
        self._said &= known
        self._hanging &= known
        return over

    def remember(self) -> list[JobMemory]:
        """Return what is to be kept of the jobs while there is no agent; what cannot be kept is left out."""
        jobs = (*self.jobs.values(), *self._waiting.values())
        # Of those whose logs do not answer, what was kept before goes on to count.
        before = {job.id: self._remembered[job.id] for job in jobs if job.id in self._remembered}
        kept = self._remembered = before

        def keep(job: TrackedJob) -> None:
            kept[job.id] = job.remember()

        self._each(jobs, keep)
        return list(kept.values())

    def search(self, now_ns: int) -> bool:
        """Search for the logs of jobs that have shown none yet; say whether there was any to search for.

        A call takes SEARCH_NS of CPU time at most, and the next one goes on: a host may have any number of
        open files.
        """
        if self._search is None:
            for name in [name for name, lane in self._lost.items() if not lane.hangs]:
                del self._lost[name]
            crowded = self._crowded_users()
            lacking = {
                name: list(job.processes.values())
                for name, job in self.jobs.items()
                if name not in self._lost and job.user not in crowded and job.wants_search(now_ns)
            }
            if not lacking:
                return False
            self._finder = self._finder.anew()
            self._search = self._finder.search(lacking)
        try:
            found, done = self._run(self._searcher, partial(_step, self._search))
        except HangingError:
            # What that job's files are on does not answer. The others are searched for without it.
            lane, self._searcher, self._search = self._searcher, Lane("search for logs"), None
            lane.close(_nothing)  # when it comes back
            if (at := self._finder.at) is not None:
                self._lost[at.rank.job] = lane
                self._stuck[lane] = at.user
            return True
        for name, source in found:
            if (job := self.jobs.get(name)) is not None:
                self._each([job], partial(_follow, source, self._proc, self._watcher))
        if done:
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
        return bool(self._unread) or any(job.behind and not self._rests(job) for job in self.jobs.values())

    def read(self, now_ns: int) -> list[Progress]:
        """Read the logs; return the jobs that got on.

        Lines that are dear to look at must not keep the agent from other jobs and from all else.
        """
        left = [job for job in self._unread if self.jobs.get(job.id) is job]
        left += [job for job in self.jobs.values() if job not in left]
        self._unread = self._each(left, partial(self._read, now_ns), READ_NS)
        got = [self._got.get() for _ in range(self._got.qsize())]
        return [progress for progress in got if self.jobs.get(progress.job.id) is progress.job]

    def check(self, now_ns: int) -> list[TrackedJob]:
        """Return the jobs that have begun to hang, or to go on. Logs must have been read before."""
        return [
            job
            for job in self.jobs.values()
            if not (job.behind or self._rests(job) or job in self._unread)
            and job.check(now_ns, self._patience)
        ]

    def _each(
        self, jobs: Iterable[TrackedJob], work: Callable[[TrackedJob], object], budget_ns: int = sys.maxsize
    ) -> list[TrackedJob]:
        """Do ``work``, which touches logs, for each of ``jobs``; return those that are left.

        That is after ``budget_ns`` of CPU time. They share a lane for it: the one whose logs do not answer
        keeps that for itself, and the others get another. Where too many of a user hang, the rest of that
        user's have no turn.
        """
        shared: list[TrackedJob] = []
        own: list[TrackedJob] = []
        for job in jobs:
            (shared if job.lane is None else own).append(job)
        until_ns = self.cpu_ns + budget_ns
        while shared := self._allowed(shared):
            turns = Round(shared, work, until_ns - self.cpu_ns)
            try:
                self._run(self._lane, turns.go)
            except HangingError as error:
                lane, self._lane = self._lane, Lane("jobs' logs")
                if (culprit := turns.abandon()) is not None:
                    culprit.lane = lane
                    self._stuck[lane] = culprit.user
                    self._came_to(culprit, error)
                else:
                    lane.close(_nothing)
                    if not (turns.done or turns.failed):  # there is no thread, or it has not begun
                        for job in turns.left:
                            self._came_to(job, error)
                        turns.left.clear()
            for job in turns.done:
                self._came_to(job)
            for job, failure in turns.failed:
                self._came_to(job, failure)
            shared = list(turns.left)
            if self.cpu_ns >= until_ns:
                break
        while own and self.cpu_ns < until_ns:
            job = own.pop(0)
            assert job.lane is not None
            if not job.hangs and not self._allowed([job]):
                continue
            try:
                self._run(job.lane, partial(work, job))
            except HangingError as error:
                self._stuck[job.lane] = job.user
                self._came_to(job, error)
            except Exception as error:  # noqa: BLE001
                self._came_to(job, error)
            else:
                self._came_to(job)
        return [*shared, *own]

    def _allowed(self, jobs: Iterable[TrackedJob]) -> list[TrackedJob]:
        """Return ``jobs`` without those of users of whom too many hang."""
        crowded = self._crowded_users()
        allowed: list[TrackedJob] = []
        for job in jobs:
            if job.user in crowded:
                self._hanging.add(job.id)
            else:
                allowed.append(job)
        return allowed

    def _crowded_users(self) -> set[int]:
        """Return the users with whose logs too many threads hang, and say so, once."""
        self._stuck = {lane: user for lane, user in self._stuck.items() if lane.hangs}
        crowded = {user for user, count in Counter(self._stuck.values()).items() if count >= MAX_HANGING}
        for user in crowded - self._crowded:
            self._log.warning(
                "too many logs of a user do not answer, none of that user's others are read meanwhile",
                user=user,
                mend="see to the file system that they are on",
            )
        self._crowded = crowded
        return crowded

    def _rests(self, job: TrackedJob) -> bool:
        """Say whether the job's logs are not read, because they do not answer or too many do not."""
        return job.hangs or job.id in self._hanging

    def _run(self, lane: Lane, work: Callable[[], T]) -> T:
        """Do ``work`` in ``lane``, and count what CPU time it takes."""
        before_ns = lane.cpu_ns
        try:
            return lane.run(work)
        finally:
            self.cpu_ns += lane.cpu_ns - before_ns

    def _close(self, job: TrackedJob) -> None:
        if not job.hangs and job.user in self._crowded_users():
            if job.has_logs or job.lane is not None:
                self._unclosed.append(job)
            return
        if job.lane is None:
            self._each([job], TrackedJob.close)
        if job.lane is not None:
            job.lane.close(job.close)
            self._stuck[job.lane] = job.user  # if it hangs: that is looked at when they are counted

    def _read(self, now_ns: int, job: TrackedJob) -> None:
        """Read the job's logs; what they gained is told of even where it comes late."""
        if (durations := job.read(now_ns)) is not None:
            self._got.put(Progress(job, durations))

    def _begin(self, name: str, members: Collection[TrainingProcess]) -> TrackedJob:
        job = TrackedJob(name, min(process.started_ns for process in members), formats=self._formats)
        if (other := self._waiting.pop(name, None)) is not None:
            self._close(other)
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
        self._each([job], lambda job: job.read(job.over_ns))
        job.health, job.reason = verdict(
            job.statuses.values(), job.counter.value, job.counter.total, failed=job.failed
        )
        if job.health is Health.DIED and self._launched(job):
            self._waiting[job.id] = job
        else:
            self._close(job)

    def _came_to(self, job: TrackedJob, error: Exception | None = None) -> None:
        """Have what goes wrong with ``job`` be its own, and no other job's: it is said, once.

        A tenant writes its logs, and names its files, as it likes; whatever of that nobody has thought of
        must not end the agent, which has every tenant's jobs. Nor may its file system have it wait.
        """
        if isinstance(error, HangingError):
            if job.id not in self._hanging:
                self._hanging.add(job.id)
                self._log.warning(
                    "a job's logs do not answer, they are not read meanwhile",
                    job=job.id,
                    mend="see to the file system that they are on",
                )
        elif error is not None:
            if job.id not in self._said:
                self._said.add(job.id)
                self._log.error("part of a job cannot be followed or kept", job=job.id, error=repr(error))
        elif job.id in self._hanging:
            self._hanging.discard(job.id)
            self._log.info("a job's logs answer again", job=job.id)

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
                self._close(job)
                del self._waiting[name]

    def _launched(self, job: TrackedJob) -> bool:
        """Say whether its launcher is there, or one of its processes, which has not been found yet."""
        processes = job.processes.values()
        return any(start_ticks(self._proc, pid) is not None for pid in _launchers(processes)) or any(
            start_ticks(self._proc, process.pid) == process.ticks for process in processes
        )


_Search = Generator[tuple[str, Source] | None, None, None]


def _step(search: _Search) -> tuple[list[tuple[str, Source]], bool]:
    """Go on with a search for SEARCH_NS; return what was found, and whether that was all."""
    found: list[tuple[str, Source]] = []
    until_ns = time.thread_time_ns() + SEARCH_NS
    for each in search:
        if each is not None:
            found.append(each)
        if time.thread_time_ns() >= until_ns:
            return found, False
    return found, True


def _follow(source: Source, proc: str, watcher: Watcher | None, job: TrackedJob) -> None:
    job.follow([source], proc, watcher)


def _nothing() -> None:
    """Nothing is left to be done."""


def _launchers(processes: Collection[TrainingProcess]) -> set[int]:
    return {process.parent for process in processes if process.parent > _NO_PROCESS}
