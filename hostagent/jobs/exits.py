"""How a process ended, told by its pidfd.

The agent is no parent of the processes that it watches, so the kernel does not tell it their exit codes by
wait(2). Since Linux 6.15 a pidfd that was opened while the process lived tells it all the same, reaped or not
(``PIDFD_GET_INFO`` in ``linux/pidfd.h``); before, a zombie's ``/proc/PID/stat`` does, if it is seen in time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import struct

_PIDFD_GET_INFO = 0xC040FF0B  # _IOWR(0xFF, 11, struct pidfd_info), of 64 bytes
_PIDFD_INFO_EXIT = 1 << 3
_INFO = struct.Struct("=QQ11Ii")  # mask, cgroup id, pid and ten more ids, exit code: 64 bytes

MAX_WATCHED = 4096
"""Most processes whose end is watched, but no more than a quarter of the files that may be open: a tenant may
have any number of processes, and there are logs to be read."""


class ExitWatch:
    """Keeps a pidfd for each process it is told of. Close it when done."""

    def __init__(self, proc: str) -> None:
        """``proc`` is where the processes are: pids mean what it says only in the agent's own ``/proc``."""
        self._proc = proc
        self._descriptors: dict[int, int] = {}
        self._same = os.path.realpath(proc) == "/proc"
        self._most = min(MAX_WATCHED, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)

    def watch(self, pid: int) -> None:
        """Remember ``pid``, which lives now."""
        if self._same and pid not in self._descriptors and len(self._descriptors) < self._most:
            with contextlib.suppress(OSError):
                self._descriptors[pid] = os.pidfd_open(pid)

    def status(self, pid: int) -> int | None:
        """Return the wait status of ``pid``, which is gone, and forget it; None where it is not known."""
        descriptor = self._descriptors.pop(pid, None)
        if descriptor is None:
            return self._zombie(pid)
        info = bytearray(_INFO.pack(_PIDFD_INFO_EXIT, *[0] * 13))
        try:
            fcntl.ioctl(descriptor, _PIDFD_GET_INFO, info)
        except OSError:
            return self._zombie(pid)
        finally:
            os.close(descriptor)
        fields = _INFO.unpack(info)
        # A zombie that nobody has waited for yet has no exit information in its pidfd.
        return int(fields[-1]) if fields[0] & _PIDFD_INFO_EXIT else self._zombie(pid)

    def _zombie(self, pid: int) -> int | None:
        try:
            with open(f"{self._proc}/{pid}/stat", "rb") as file:
                text = file.read(4096)
        except OSError:
            return None
        fields = text[text.rfind(b")") + 2 :].split()
        return int(fields[49]) if len(fields) > 49 and fields[0] in (b"Z", b"X") else None

    def close(self) -> None:
        """Forget every process."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()


def describe(status: int) -> str:
    """Say a wait status in words: ``exit code 1``, ``SIGKILL``."""
    if not os.WIFSIGNALED(status):
        return f"exit code {os.waitstatus_to_exitcode(status)}"
    number = os.WTERMSIG(status)
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
