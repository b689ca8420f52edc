"""Finding the training processes in ``/proc``."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from hostagent.jobs import kubernetes
from hostagent.jobs.identity import (
    MARKERS,
    MAX_ID,
    Rank,
    identify,
    identify_ray,
    is_lightning_child,
    parse_command,
    parse_environ,
)
from hostagent.logs.place import Place

MAX_ENVIRON = 1 << 20
"""Most bytes of an environment that are read."""

RECHECK_NS = 15 * 10**9
"""A process that is not training is looked at again at least this often: ``exec`` changes environments."""

SCAN_NS = 100_000_000
"""CPU time that looking at new processes may take at once: a tenant may start a hundred thousand of them."""

OWNERS_NS = 200_000_000
"""CPU time that looking through open files for sockets may take at once."""

MAX_JOBS = 64
"""Most jobs of one user on this host: controllers take 256 of a host, and there are other users."""

NS_PER_TICK = 10**9 // os.sysconf("SC_CLK_TCK")


_CAPABILITIES = 1 << 2 | 1 << 19  # CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE


@dataclass(frozen=True, slots=True)
class TrainingProcess:
    """A rank of a job, or a helper that inherited the rank's environment (data loaders do)."""

    pid: int
    rank: Rank
    started_ns: int
    """When the process started, by the monotonic clock."""
    ticks: int
    """The start as the kernel writes it: tells a process from a later one with the same pid."""
    parent: int = 0
    user: int = 0
    slurm_log: str = ""
    """Where Slurm writes the job's output by default, as the process names it; empty outside Slurm."""


class ProcessFinder:
    """Keeps track of the training processes under ``proc``.

    ``network_namespace`` is the text of a ``/proc/PID/ns/net`` link; processes in others are none of ours.
    None takes all.
    """

    def __init__(self, proc: str, host: str, network_namespace: str | None) -> None:
        self._proc = proc
        self._host = host
        self._namespace = network_namespace
        self._others: dict[int, tuple[int, int]] = {}  # pid -> first seen, next look
        self._owners: dict[str, int] = {}  # job -> the user whose it is on this host
        self._open_files: dict[int, int] = {}  # pid -> how many it had open when they were gone through
        self.processes: dict[int, TrainingProcess] = {}
        self.crowded: set[int] = set()
        """Users who have more jobs than are believed."""
        self.denied = False
        """Some process could not be looked at for want of permission."""
        # The kernel counts a process's start since boot, suspended time included; monotonic time leaves
        # that out.
        self._suspended_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()

    def scan(self, now_ns: int) -> bool:
        """Look for processes that came, went or became training ones; say whether ``processes`` changed.

        A process already known not to train is looked at again after as long as it has been known, at most
        RECHECK_NS: a launcher may become the training process by ``exec``. What there is no time for is left
        to the next scan.
        """
        changed = False
        alive = {int(name) for name in os.listdir(self._proc) if name.isdigit()}
        for pid, process in list(self.processes.items()):
            if pid not in alive or read_stat(self._proc, pid)[0] != process.ticks:
                del self.processes[pid]
                changed = True
        if changed:
            left = {process.rank.job for process in self.processes.values()}
            self._owners = {job: user for job, user in self._owners.items() if job in left}
        others = {pid: times for pid, times in self._others.items() if pid in alive}
        due = [pid for pid in alive - self.processes.keys() if others.get(pid, (0, 0))[1] <= now_ns]
        # New ones first, so that many others do not hide them, and of those the oldest, as far as pids tell:
        # whose a job is must not depend on when the agent starts.
        due.sort(key=lambda pid: (*others.get(pid, (0, 0))[1:], pid))
        until_ns = time.thread_time_ns() + SCAN_NS
        for pid in due:
            first, _ = others.pop(pid, (now_ns, now_ns))
            if self._examine(pid):
                changed = True
            else:
                others[pid] = (first, now_ns + min(now_ns - first, RECHECK_NS))
            if time.thread_time_ns() >= until_ns:
                break
        self._others = others
        return changed

    def socket_owners(self) -> dict[int, str]:
        """Map the inode of every socket that a training process has open to the process's job.

        Those with the fewest open files, as far as is known, come first, and after OWNERS_NS nothing more: a
        tenant may have a million open.
        """
        owners: dict[int, str] = {}
        known, self._open_files = self._open_files, {}
        until_ns = time.thread_time_ns() + OWNERS_NS
        for pid in sorted(self.processes, key=lambda pid: known.get(pid, 0)):
            if time.thread_time_ns() >= until_ns:
                self._open_files[pid] = known.get(pid, 0)
                continue
            job, count = self.processes[pid].rank.job, 0
            with contextlib.suppress(OSError), os.scandir(f"{self._proc}/{pid}/fd") as entries:
                for count, entry in enumerate(entries, 1):
                    if count % 64 == 0 and time.thread_time_ns() >= until_ns:
                        break
                    if inode := self._socket(entry.path):
                        owners[inode] = job
            self._open_files[pid] = count
        return owners

    @staticmethod
    def _socket(path: str) -> int:
        """Return the inode of the socket that a descriptor is; 0: it is none."""
        try:
            target = os.readlink(path)
        except OSError:
            return 0
        return int(target[8:-1]) if target.startswith("socket:[") else 0

    def user_of(self, job: str) -> int:
        """Return whose ``job`` is on this host."""
        return self._owners.get(job, 0)

    def _examine(self, pid: int) -> bool:
        """Look whether ``pid`` trains; then note it."""
        try:
            if self._namespace and os.readlink(f"{self._proc}/{pid}/ns/net") != self._namespace:
                return False
            data = read_file(f"{self._proc}/{pid}/environ", MAX_ENVIRON)
            if not any(marker in data for marker in MARKERS):
                return False
        except PermissionError:
            self.denied = True
            return False
        except OSError:
            return False
        environ, command = parse_environ(data), self._command(pid)
        ticks, parent = read_stat(self._proc, pid)
        if ticks is None:
            return False
        rank = identify(environ, self._host, command, self._labels(pid, environ))
        if rank is None and "RAY_JOB_ID" in environ:
            rank = identify_ray(environ, command, self._command(parent), pid)
        if rank is None:
            return False
        self._note(pid, rank, ticks, parent, _slurm_log(environ))
        if is_lightning_child(environ) and self._command(parent)[1:] == command[1:]:
            # Rank 0 started the others, with its own command line, and has set its environment only for them.
            ticks, grandparent = read_stat(self._proc, parent)
            if ticks is not None and parent not in self.processes:
                self._note(parent, Rank(rank.job, 0, rank.world_size), ticks, grandparent, "")
        return True

    def _note(self, pid: int, rank: Rank, ticks: int, parent: int, slurm_log: str) -> None:
        if (user := user_of(self._proc, pid)) is None:
            return  # gone already
        rank = rank if self._owners.get(rank.job, user) == user else _qualified(rank, user)
        if rank.job not in self._owners and Counter(self._owners.values())[user] >= MAX_JOBS:
            self.crowded.add(user)
            return
        if self._owners.setdefault(rank.job, user) != user:
            return  # somebody has taken that name, too, and is not believed
        started_ns = max(1, ticks * NS_PER_TICK - self._suspended_ns)
        self.processes[pid] = TrainingProcess(pid, rank, started_ns, ticks, parent, user, slurm_log)

    def _labels(self, pid: int, environ: Mapping[str, str]) -> dict[str, str]:
        """Return what the downward API tells in the root of ``pid``; empty outside Kubernetes."""
        if not kubernetes.is_pod(environ):
            return {}
        root = f"{self._proc}/{pid}/root"
        user = user_of(self._proc, pid)
        labels = kubernetes.parse_labels(_read_within(root, kubernetes.PODINFO[0], user))
        for path in (kubernetes.PODINFO[1], kubernetes.SERVICE_ACCOUNT):
            if namespace := _read_within(root, path, user).strip():
                labels[kubernetes.NAMESPACE] = namespace
                break
        return labels

    def _command(self, pid: int) -> list[str]:
        """Return the argument vector; empty where it cannot be read."""
        try:
            return parse_command(read_file(f"{self._proc}/{pid}/cmdline", 65_536))
        except OSError:
            return []


def _qualified(rank: Rank, user: int) -> Rank:
    """Return ``rank`` under a name of its own: that which it claims is another user's job here."""
    return replace(rank, job=f"{rank.job[: MAX_ID - 12]}@{user}")


def read_stat(proc: str, pid: int) -> tuple[int | None, int]:
    """Return when ``pid`` started (clock ticks since boot) and its parent; None where it trains no more."""
    try:
        text = read_file(f"{proc}/{pid}/stat", 4096)
    except OSError:
        return None, 0
    # The second field is the command in parentheses and may hold anything, parentheses included.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return None, 0
    return int(fields[19]), int(fields[1])


def start_ticks(proc: str, pid: int) -> int | None:
    """Return when ``pid`` started (clock ticks since boot); None where it is gone or a zombie."""
    return read_stat(proc, pid)[0]


def read_file(path: str, size: int) -> bytes:
    """Return up to ``size`` bytes of a file under ``/proc``. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)


def user_of(proc: str, pid: int) -> int | None:
    """Return whose process ``pid`` is; None where it is gone."""
    try:
        return os.stat(f"{proc}/{pid}").st_uid
    except OSError:
        return None


def _read_within(root: str, path: str, user: int | None) -> str:
    """Read a small file within ``root`` that ``user`` may read; empty where it is not there."""
    try:
        descriptor = Place(path, root).open()
    except OSError:
        return ""
    try:
        found = os.fstat(descriptor)
        if found.st_uid != user and not found.st_mode & stat.S_IROTH:
            return ""  # it would be told to somebody who cannot read it
        return os.read(descriptor, 65_536).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def _slurm_log(environ: Mapping[str, str]) -> str:
    """Return the file that sbatch writes to without ``--output``."""
    directory, job = environ.get("SLURM_SUBMIT_DIR", ""), environ.get("SLURM_JOB_ID", "")
    if not (directory.startswith("/") and job.isdigit()):
        return ""
    array = environ.get("SLURM_ARRAY_JOB_ID", ""), environ.get("SLURM_ARRAY_TASK_ID", "")
    return f"{directory}/slurm-{'_'.join(array) if all(part.isdigit() for part in array) else job}.out"


def sees_everyone() -> bool:
    """Say whether this process may read every other's environment, open files and stdout."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        effective = next((int(line.split()[1], 16) for line in status if line.startswith("CapEff:")), 0)
    return effective & _CAPABILITIES == _CAPABILITIES


def own_network_namespace(proc: str) -> str:
    """Return the calling thread's ``ns/net`` link, as ``net:[4026531840]``. Raises OSError without /proc."""
    return os.readlink(f"{proc}/thread-self/ns/net")
