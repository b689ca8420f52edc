"""One job as this host sees it: who is in it, how far it is by its own log, how it is."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from hostagent.jobs.health import Health, Patience
from hostagent.jobs.identity import Rank
from hostagent.jobs.processes import TrainingProcess, start_ticks
from hostagent.jobs.sources import Source, descriptor_flags, outputs
from hostagent.jobs.told import Told
from hostagent.lane import Lane
from hostagent.logs import FORMATS
from hostagent.logs.counter import IterationCounter
from hostagent.logs.format import LogFormat
from hostagent.logs.place import GONE
from hostagent.logs.reader import LogReader, Read
from hostagent.logs.tail import Bookmark, Identity, Tail
from hostagent.logs.watch import Watcher
from hostagent.memory import JobMemory, LogMemory

FRESH_NS = 2 * 10**9
"""A process younger than this has hardly logged an iteration: what it appends to is an earlier run's log."""

MAX_LOGS = 16
"""Most logs of one job that are read."""

TIME_ZONES_S = 26 * 3600
"""The time in a log may differ by so much from the same moment's elsewhere."""

FIRST_SEARCH_NS, LAST_SEARCH_NS = 2 * 10**9, 60 * 10**9
"""Time from one search for a job's log to the next: doubled each time, up to the last."""

PATIENT_NS = 10 * 10**9
"""How long a job may show no iteration in its own outputs before its log is searched for elsewhere."""


@dataclass(slots=True)
class _Log:
    reader: LogReader
    holder: tuple[int, int] | None


@dataclass(slots=True, eq=False)
class TrackedJob:
    """One job."""

    id: str
    started_ns: int
    world_size: int = 0
    local_ranks: int = 0
    formats: Sequence[LogFormat] = FORMATS
    counter: IterationCounter = field(init=False)
    health: Health = Health.RUNNING
    reason: str = ""
    """Why ``health`` is what it is, where that needs saying."""
    processes: dict[int, TrainingProcess] = field(default_factory=dict)
    statuses: dict[int, int | None] = field(default_factory=dict)
    """By rank, how those that are gone have ended: wait statuses, None where not known."""
    over_ns: int = 0
    """When it was over."""
    _logs: list[_Log] = field(default_factory=list)
    _told: Told | None = None
    _leader: LogReader | Told | None = None
    _search_ns: int = 0
    _search_every_ns: int = FIRST_SEARCH_NS
    _seen_ns: int = 0
    _kept: list[LogMemory] = field(default_factory=list)
    """Logs that were read before the agent started, and have not been found again yet."""
    lane: Lane | None = None
    """Where all is done that touches its logs, once they have not answered; before, in one for all jobs.

    That is `follow_outputs`, `follow`, `read`, `remember` and `close`.
    """

    def __post_init__(self) -> None:
        self.counter = IterationCounter(self.started_ns)

    @classmethod
    def recalled(cls, memory: JobMemory, formats: Sequence[LogFormat]) -> TrackedJob:
        """Return the job that ``memory`` is of, as it was when the agent ended."""
        job = cls(memory.id, memory.started_ns, formats=formats)
        job.counter.go_on(memory.counter)
        job.processes = {
            pid: TrainingProcess(pid, Rank(memory.id, 0, 0), memory.started_ns, ticks, parent)
            for pid, ticks, parent in memory.processes
        }
        job._kept = list(memory.logs)
        if memory.told:
            job._leader = job._told = Told()
        return job

    def remember(self) -> JobMemory:
        """Return what is to be kept of it while there is no agent."""
        logs: list[LogMemory] = []
        for reader in (log.reader for log in self._logs):
            if bookmark := reader.bookmark():
                known, parser = reader.remember()
                logs.append(
                    LogMemory(
                        kind=reader.kind,
                        place=str(reader.place),
                        bookmark=bookmark,
                        format=known,
                        parser=parser,
                        leads=reader is self._leader,
                    )
                )
        return JobMemory(
            id=self.id,
            started_ns=self.started_ns,
            processes=tuple(
                (process.pid, process.ticks, process.parent) for process in self.processes.values()
            ),
            counter=self.counter.state(),
            logs=(*logs, *self._kept)[:MAX_LOGS],
            told=self._leader is not None and self._leader is self._told,
        )

    @property
    def log_format(self) -> str:
        """Name of the log's format; empty where no log on this host has iterations."""
        if self._leader is not None:
            return self._leader.format
        return next((log.format for log in self._kept if log.leads), "")

    @property
    def source(self) -> str:
        """Where progress is read, or may yet be; empty where there is nothing to read."""
        if self._leader is not None:
            return self._leader.kind
        if kind := next((log.kind for log in self._kept if log.leads), ""):
            return kind
        return self._logs[0].reader.kind if self._logs else ""

    @property
    def behind(self) -> bool:
        """There is more in the logs than one read takes."""
        return any(log.reader.behind for log in self._logs)

    @property
    def hangs(self) -> bool:
        """Its logs do not answer."""
        return self.lane is not None and self.lane.hangs

    @property
    def has_logs(self) -> bool:
        """There are logs of it that must be closed."""
        return bool(self._logs)

    @property
    def user(self) -> int:
        """Whose it is."""
        return next((process.user for process in self.processes.values()), 0)

    @property
    def failed(self) -> bool:
        """The log that counts ends with a traceback."""
        return self._leader is not None and self._leader.failed

    def main_processes(self) -> list[TrainingProcess]:
        """Return the ranks' own processes, and none of their children."""
        return [process for process in self.processes.values() if process.parent not in self.processes]

    def rejected(self) -> Counter[str]:
        """Return how many lines were not believed, by reason."""
        total = Counter(self.counter.rejected)
        for reader in self._readers():
            total.update(dict(reader.rejected))  # at once: another thread may be reading
            total["line too long"] += reader.lines_too_long
        return +total

    def update(self, processes: Collection[TrainingProcess]) -> None:
        """Take in the job's present processes, and ranks."""
        self.processes = {process.pid: process for process in processes}
        self.world_size = max(process.rank.world_size for process in processes)
        self.local_ranks = len({process.rank.rank for process in processes})

    def follow_outputs(self, proc: str, watcher: Watcher | None) -> None:
        """Read those outputs of its processes that are regular files, and let go of what nobody writes."""
        processes = list(self.processes.values())
        found: dict[Identity, Source] = {}
        for process in processes:
            for source in outputs(process, proc):
                found.setdefault(source.identity, source)
        alive = {(process.pid, process.ticks) for process in processes}
        for log in list(self._logs):
            if log.reader.identity is not None and (same := found.pop(log.reader.identity, None)):
                # The process by which it was opened may have gone.
                log.reader.place, log.holder = same.place, same.holder
            elif log.holder and log.holder not in alive and start_ticks(proc, log.holder[0]) != log.holder[1]:
                self._let_go(log)
        self.follow(found.values(), proc, watcher)

    def follow(self, sources: Collection[Source], proc: str, watcher: Watcher | None) -> None:
        """Read ``sources``, too, as far as they are not read yet."""
        known = {log.reader.identity for log in self._logs}
        places = {log.reader.place for log in self._logs}
        for source in sources:
            # A known place with another file: its reader is about to see that.
            if source.identity in known or source.place in places or len(self._logs) >= MAX_LOGS:
                continue
            if source.holder is not None and not _writes(source, proc):
                continue  # whose file it is, and whether its user may read it, nobody has asked
            known.add(source.identity)
            kept = self._kept_of(source)
            start: int | Bookmark = source.found.st_size if _is_old(source, proc) else 0
            if kept is not None and kept.bookmark[:2] == source.identity:
                start = kept.bookmark
            begun_s = time.time() - (time.monotonic_ns() - self.started_ns) / 1e9 - TIME_ZONES_S
            reader = LogReader(source.kind, Tail(source.place, start, watcher), self.formats, begun_s)
            if kept is not None:
                reader.recall(kept.format, kept.parser)
                self._leader = reader if kept.leads else self._leader
            self._logs.append(_Log(reader, source.holder))

    def _kept_of(self, source: Source) -> LogMemory | None:
        """Return, and forget, what was kept of the log: that of its file, or of one that it has replaced."""
        for is_it in (
            lambda log: log.bookmark[:2] == source.identity,
            lambda log: log.place == str(source.place),
        ):
            for log in filter(is_it, self._kept):
                self._kept.remove(log)
                return log
        return None

    def wants_search(self, now_ns: int) -> bool:
        """Say whether its log is to be searched for now."""
        if self._leader is not None and not self._is_gone(self._leader):
            return False
        if not self._search_ns:
            self._search_ns = self.started_ns + PATIENT_NS if self._logs else now_ns
        if now_ns < self._search_ns:
            return False
        self._search_ns = now_ns + self._search_every_ns
        self._search_every_ns = min(2 * self._search_every_ns, LAST_SEARCH_NS)
        return True

    def tell(self, first: str, now: str) -> None:
        """Take in what one of its ranks says of itself."""
        if self._told is None:
            self._told = Told()
        self._told.tell(first, now)

    def read(self, now_ns: int) -> list[int] | None:
        """Read the logs; return the durations of iterations completed, None where nothing new counts.

        Several ranks may log the same iterations: only the first log that has any is used, until it is silent
        because its process has gone and another goes on. What the ranks tell themselves goes before any log.
        """
        before = (self.counter.iterations, self.counter.last_ns)
        durations: list[int] = []
        for reader in self._readers():
            got = reader.read(now_ns)
            if got.marks and (self._leader is None or reader is self._told or self._is_gone(self._leader)):
                self._leader = reader
            elif got.marks and self._leader is not None and reader.rank > self._leader.rank:
                # What was counted is anybody's progress bar, and this is a training's log.
                self._leader = reader
                got.marks[0] = replace(got.marks[0], anew=True)
            if reader is self._leader:
                durations += self._count(got)
        return durations if (self.counter.iterations, self.counter.last_ns) != before else None

    def check(self, now_ns: int, patience: Patience) -> bool:
        """Look whether it hangs; say whether that has changed."""
        seen_ns = max(self._seen_ns, self.counter.last_ns)
        limit_ns = patience.limit_ns(self.counter.gap_ns)
        hangs = bool(self.counter.last_ns) and now_ns - seen_ns > limit_ns
        if hangs == (self.health is Health.HUNG):
            return False
        self.health = Health.HUNG if hangs else Health.RUNNING
        self.reason = f"no iteration for more than {limit_ns / 1e9:.0f} s" if hangs else ""
        return True

    def close(self) -> None:
        """Close the logs."""
        for log in self._logs:
            log.reader.close()

    def _count(self, got: Read) -> list[int]:
        if got.marks:
            # A mark that is held counts for nothing yet, and is a sign of life.
            self._seen_ns = max(self._seen_ns, got.written_ns)
        return [
            duration
            for mark in got.marks
            for duration in self.counter.see(mark, max(got.written_ns, self.started_ns), live=got.live)
        ]

    def _readers(self) -> list[LogReader | Told]:
        told: list[LogReader | Told] = [self._told] if self._told else []
        return told + [log.reader for log in self._logs]

    def _let_go(self, log: _Log) -> None:
        # Its pid may be another process's by now. What the leader has open is read to its end.
        log.reader.place, log.holder = GONE, None
        if log.reader is not self._leader:
            log.reader.close()
            self._logs.remove(log)

    @staticmethod
    def _is_gone(reader: LogReader | Told) -> bool:
        return isinstance(reader, LogReader) and reader.place == GONE


def _writes(source: Source, proc: str) -> bool:
    """Say whether the file is open for writing: it may be open only for its name (O_PATH), as any file."""
    return _flags(source, proc) & os.O_ACCMODE != os.O_RDONLY


def _flags(source: Source, proc: str) -> int:
    """Return the flags with which the descriptor was opened by which the file was found; 0: there is none."""
    if source.holder is None:
        return 0
    return descriptor_flags(proc, source.holder[0], source.place.path.rpartition("/")[2])


def _is_old(source: Source, proc: str) -> bool:
    """Say whether what is in the log now was written by an earlier run, not by this one."""
    now_ns = time.monotonic_ns()
    appends = source.kind == "glob"  # of files that are only named, the others are the job's alone
    if source.holder is not None:
        appends = bool(_flags(source, proc) & os.O_APPEND)
    if appends and now_ns - source.process.started_ns < FRESH_NS:
        return True
    started = time.time_ns() - (now_ns - source.process.started_ns)
    return source.found.st_mtime_ns < started - 2 * 10**8
