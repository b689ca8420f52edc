"""Where a job's log may be: its outputs, who reads them, what Slurm, the kubelet and the user name.

A process's own standard output and error are looked at whenever its job is, the rest is searched for only as
long as no log of the job has shown an iteration. Nothing found here is believed to be a log until it does.
"""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import os
import stat
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from hostagent.jobs import kubernetes
from hostagent.jobs.identity import parse_environ
from hostagent.jobs.processes import TrainingProcess, read_file, start_ticks, user_of
from hostagent.logs.place import Place
from hostagent.logs.tail import Identity

MAX_FILES = 4
"""Most files that one reader of a pipe may write for one of them to be the log."""

MAX_HOPS = 3
"""``python .. | ts | tee log``: so many pipes are followed."""

_SLURM_WRITERS = (b"srun\n", b"slurm_script\n")


@dataclass(frozen=True, slots=True)
class Source:
    """A file that may be a job's log."""

    kind: str
    """How it was found: stdout, stderr, pipe, slurm, container or glob."""
    place: Place
    identity: Identity
    found: os.stat_result
    process: TrainingProcess
    """The process of the job by which it was found."""
    holder: tuple[int, int] | None = None
    """Pid and start of the process by whose descriptor it is opened; None where it is named."""


def outputs(process: TrainingProcess, proc: str) -> Iterator[Source]:
    """Yield the standard output and error of ``process`` where they are regular files."""
    for kind, number in (("stdout", 1), ("stderr", 2)):
        yield from _source(
            kind, Place(f"{proc}/{process.pid}/fd/{number}"), process, (process.pid, process.ticks)
        )


class SourceFinder:
    """Searches for the logs of jobs whose outputs are no files, or no logs."""

    def __init__(self, proc: str, patterns: Sequence[str] = ()) -> None:
        """``patterns`` are the user's: names of files that a job's processes have open.

        Where one has ``{job}`` in it, files of that name count that no process has open, too.
        """
        self._proc = proc
        self._patterns = patterns
        self.at: TrainingProcess | None = None
        """The process for whose job files are being looked at."""

    def anew(self) -> SourceFinder:
        """Return another one alike."""
        return SourceFinder(self._proc, self._patterns)

    def search(
        self, jobs: Mapping[str, Collection[TrainingProcess]]
    ) -> Generator[tuple[str, Source] | None, None, None]:
        """Yield what may be the logs of ``jobs``, with the job's name, best first. Walks all processes once.

        There may be any number of processes and open files, and looking at each takes its time: None comes
        after each, so that whoever asks may do something else in between.
        """
        pipes: dict[int, tuple[str, TrainingProcess]] = {}
        slurm = False
        for name, processes in jobs.items():
            for process in processes:
                self.at = process
                for number, target in self._descriptors(process.pid):
                    yield None
                    if number in ("1", "2") and (inode := _pipe(target)):
                        pipes.setdefault(inode, (name, process))
                    elif target.startswith("/") and any(
                        fnmatch.fnmatchcase(target, _fill(pattern, name)) for pattern in self._patterns
                    ):
                        place = Place(f"{self._proc}/{process.pid}/fd/{number}")
                        yield from _named(
                            name, self._source("glob", place, process, (process.pid, process.ticks))
                        )
            self.at = first = min(processes, key=lambda process: process.ticks)
            yield from _named(name, self._container(first))
            yield from _named(name, self._by_name(name, first))
            slurm |= bool(first.slurm_log)
        if pipes or slurm:
            yield from self._walk(jobs, pipes, slurm=slurm)
        for name, processes in jobs.items():
            first = min(processes, key=lambda process: process.ticks)
            if first.slurm_log:
                place = Place(first.slurm_log, f"{self._proc}/{first.pid}/root", first.user)
                yield from _named(name, self._source("slurm", place, first, None))

    def _walk(
        self,
        jobs: Mapping[str, Collection[TrainingProcess]],
        pipes: Mapping[int, tuple[str, TrainingProcess]],
        *,
        slurm: bool,
    ) -> Iterator[tuple[str, Source] | None]:
        """Look through all processes for readers of ``pipes`` and for what writes Slurm's output."""
        ends: dict[int, list[tuple[int, str]]] = {}  # pipe -> who has it open, and as which descriptor
        for pid in (int(name) for name in os.listdir(self._proc) if name.isdigit()):
            yield None
            if slurm and _read(f"{self._proc}/{pid}/comm") in _SLURM_WRITERS:
                # Anybody can call a process so, put another's job into its environment, and have that hang.
                user = user_of(self._proc, pid)
                mine = [process for job in jobs.values() for process in job if process.user == user]
                if mine:
                    self.at = mine[0]
                    name = parse_environ(_read(f"{self._proc}/{pid}/environ")).get("SLURM_JOB_ID", "")
                    for process in islice((one for one in mine if one.rank.job == name), 1):
                        yield from _named(name, self._files(pid, "slurm", process, ("1", "2")))
            if pipes:
                for number, target in self._descriptors(pid):
                    yield None
                    if inode := _pipe(target):
                        ends.setdefault(inode, []).append((pid, number))
        for inode, (name, process) in pipes.items():
            yield from _named(name, self._behind(inode, process, ends, MAX_HOPS))

    def _behind(
        self, inode: int, process: TrainingProcess, ends: Mapping[int, list[tuple[int, str]]], hops: int
    ) -> Iterator[Source | None]:
        """Yield the files written by who reads pipe ``inode``, or by who reads what that writes."""
        for pid, number in ends.get(inode, ()):
            if pid == process.pid or self._access(pid, number) != os.O_RDONLY:
                continue
            if _pipe(self._target(pid, number)) != inode:
                continue  # the walk took a while: it has been closed since
            files: list[Source] = []
            for found in self._files(pid, "pipe", process):
                if found is not None:
                    files.append(found)
                yield None
            if len(files) <= MAX_FILES:
                yield from files
            if hops > 1 and (onward := _pipe(self._target(pid, "1"))) and onward != inode:
                yield from self._behind(onward, process, ends, hops - 1)

    def _files(
        self, pid: int, kind: str, process: TrainingProcess, numbers: Collection[str] = ()
    ) -> Iterator[Source | None]:
        """Yield the regular files that ``pid`` has open for writing: ``numbers``, or all but its errors."""
        ticks = start_ticks(self._proc, pid)
        if ticks is None:
            return
        for number, target in self._descriptors(pid):
            yield None
            if target.startswith("/") and (number in numbers if numbers else number != "2"):
                if self._access(pid, number) == os.O_RDONLY:
                    continue
                yield from self._source(kind, Place(f"{self._proc}/{pid}/fd/{number}"), process, (pid, ticks))

    def _container(self, process: TrainingProcess) -> Iterator[Source]:
        """Yield the log that the container runtime keeps for the container of ``process``."""
        identifier = kubernetes.container(
            _read(f"{self._proc}/{process.pid}/cgroup").decode("ascii", "replace")
        )
        root = f"{self._proc}/1/root"
        for pattern in kubernetes.container_logs(identifier) if identifier else ():
            self.at = process
            for path in glob.glob(pattern, root_dir=root):
                yield from self._source("container", Place(path, root), process, None)

    def _by_name(self, job: str, process: TrainingProcess) -> Iterator[Source]:
        """Yield files that the user names by the job, and that belong to the job's user."""
        for pattern in self._patterns:
            if "{job}" in pattern:
                self.at = process
                for path in sorted(glob.glob(_fill(pattern, job)))[:MAX_FILES]:
                    yield from self._source("glob", Place(path, "/", process.user), process, None)

    def _descriptors(self, pid: int) -> Iterator[tuple[str, str]]:
        """Yield each open descriptor's number, and what it is."""
        # Not listdir: there may be a million.
        with contextlib.suppress(OSError), os.scandir(f"{self._proc}/{pid}/fd") as entries:
            for entry in entries:
                if target := self._target(pid, entry.name):
                    yield entry.name, target

    def _target(self, pid: int, number: str) -> str:
        """Return what a descriptor is; empty where it is not, or not any more."""
        try:
            return os.readlink(f"{self._proc}/{pid}/fd/{number}")
        except OSError:
            return ""

    def _access(self, pid: int, number: str) -> int:
        """Return O_RDONLY, O_WRONLY or O_RDWR."""
        return descriptor_flags(self._proc, pid, number) & os.O_ACCMODE

    def _source(
        self, kind: str, place: Place, process: TrainingProcess, holder: tuple[int, int] | None
    ) -> Iterable[Source]:
        self.at = process
        return _source(kind, place, process, holder)


def descriptor_flags(proc: str, pid: int, number: str) -> int:
    """Return the flags with which a descriptor was opened; 0 where they cannot be read."""
    for line in _read(f"{proc}/{pid}/fdinfo/{number}").splitlines():
        if line.startswith(b"flags:"):
            return int(line.split()[1], 8)
    return 0


def _source(
    kind: str, place: Place, process: TrainingProcess, holder: tuple[int, int] | None
) -> Iterable[Source]:
    try:
        found = place.stat()
    except OSError:
        return ()
    if not stat.S_ISREG(found.st_mode):
        return ()
    return (Source(kind, place, (found.st_dev, found.st_ino), found, process, holder),)


def _named(job: str, sources: Iterable[Source | None]) -> Iterator[tuple[str, Source] | None]:
    """Yield ``sources`` with the job's name, and the pauses between them."""
    for source in sources:
        yield (job, source) if source is not None else None


def _pipe(target: str) -> int | None:
    return int(target[6:-1]) if target.startswith("pipe:[") else None


def _fill(pattern: str, job: str) -> str:
    """Put a job's id into a pattern; no id leads to another directory, or matches more than itself."""
    return pattern.replace("{job}", glob.escape(job.replace("/", "_").strip(".")))


def _read(path: str) -> bytes:
    try:
        return read_file(path, 1 << 20)
    except OSError:
        return b""
