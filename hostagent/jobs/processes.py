"""Finding the training processes in ``/proc``."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from hostagent.jobs.identity import Rank, identify, parse_environ

MAX_ENVIRON = 1 << 20
"""Most bytes of an environment that are read."""

RECHECK_NS = 15 * 10**9
"""A process that is not training is looked at again at least this often: ``exec`` changes environments."""

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
        self.processes: dict[int, TrainingProcess] = {}
        self.denied = False
        """Some process could not be looked at for want of permission."""
        # The kernel counts a process's start since boot, suspended time included; monotonic time leaves
        # that out.
        self._suspended_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()

    def scan(self, now_ns: int) -> bool:
        """Look for processes that came, went or became training ones; say whether ``processes`` changed.

        A process already known not to train is looked at again after as long as it has been known, at most
        RECHECK_NS: a launcher may become the training process by ``exec``.
        """
        changed = False
        alive = {int(name) for name in os.listdir(self._proc) if name.isdigit()}
        for pid, process in list(self.processes.items()):
            if pid not in alive or self._start_ticks(pid) != process.ticks:
                del self.processes[pid]
                changed = True
        others: dict[int, tuple[int, int]] = {}
        for pid in alive - self.processes.keys():
            first, look = self._others.get(pid, (now_ns, now_ns))
            if look > now_ns:
                others[pid] = (first, look)
            elif (process_found := self._examine(pid)) is not None:
                self.processes[pid] = process_found
                changed = True
            else:
                others[pid] = (first, now_ns + min(now_ns - first, RECHECK_NS))
        self._others = others
        return changed

    def socket_owners(self) -> dict[int, str]:
        """Map the inode of every socket that a training process has open to the process's job."""
        owners: dict[int, str] = {}
        for pid, process in self.processes.items():
            directory = f"{self._proc}/{pid}/fd"
            try:
                names = os.listdir(directory)
            except OSError:
                continue
            for name in names:
                try:
                    target = os.readlink(f"{directory}/{name}")
                except OSError:
                    continue
                if target.startswith("socket:["):
                    owners[int(target[8:-1])] = process.rank.job
        return owners

    def _examine(self, pid: int) -> TrainingProcess | None:
        try:
            if self._namespace and os.readlink(f"{self._proc}/{pid}/ns/net") != self._namespace:
                return None
            data = _read(f"{self._proc}/{pid}/environ", MAX_ENVIRON)
        except PermissionError:
            self.denied = True
            return None
        except OSError:
            return None
        if b"RANK=" not in data or b"WORLD_SIZE=" not in data:
            return None
        rank, ticks = identify(parse_environ(data), self._host), self._start_ticks(pid)
        if rank is None or ticks is None:
            return None
        return TrainingProcess(pid, rank, max(1, ticks * NS_PER_TICK - self._suspended_ns), ticks)

    def _start_ticks(self, pid: int) -> int | None:
        """Return when ``pid`` started (clock ticks since boot); None where it is gone or a zombie."""
        try:
            text = _read(f"{self._proc}/{pid}/stat", 4096)
        except OSError:
            return None
        # The second field is the command in parentheses and may hold anything, parentheses included.
        fields = text[text.rfind(b")") + 2 :].split()
        if len(fields) < 20 or fields[0] in (b"Z", b"X"):
            return None
        return int(fields[19])


def _read(path: str, size: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)


def sees_everyone() -> bool:
    """Say whether this process may read every other's environment, open files and stdout."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        effective = next((int(line.split()[1], 16) for line in status if line.startswith("CapEff:")), 0)
    return effective & _CAPABILITIES == _CAPABILITIES


def own_network_namespace(proc: str) -> str:
    """Return the calling thread's ``ns/net`` link, as ``net:[4026531840]``. Raises OSError without /proc."""
    return os.readlink(f"{proc}/thread-self/ns/net")
