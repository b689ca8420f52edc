"""The socket that the NCCL plugin sends to, and who is believed.

The kernel says which process a datagram comes from (SO_PASSCRED): it counts only where that is a training
process that the agent has found by itself, and its user is that process's. So whoever may write to the socket
can speak for its own job only.
"""

from __future__ import annotations

import array
import os
import socket
import stat
import struct
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from hostagent.jobs.processes import TrainingProcess
from hostagent.nccl.messages import LONGEST, Message, MessageError, parse
from leveller.errors import UserError

MOST = 64
"""Datagrams that are read at once."""

_CREDENTIALS = struct.Struct("=iII")  # ucred: pid, uid, gid


class Told(NamedTuple):
    """A message, and whose it is."""

    pid: int
    job: str
    message: Message


class Receiver:
    """Receives the plugin's datagrams at a path. Close it when done, which removes the path."""

    def __init__(self, path: Path, proc: str) -> None:
        """Open the socket; every user may send to it. Raises UserError where it cannot be."""
        self._path = path
        self._proc = proc
        self._users: dict[tuple[int, int], int | None] = {}  # process and its start -> user
        self.refused: Counter[str] = Counter()
        """Datagrams that were not believed, by reason."""
        self._socket = socket.socket(
            socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        )
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        try:
            _remove_stale(path)
            self._socket.bind(str(path))
            path.chmod(0o666)
        except OSError as error:
            self._socket.close()
            raise UserError(
                f"agent.nccl_socket = {path} cannot be opened ({error.strerror or error})",
                "give a path in a directory that the agent may write to, such as /run/leveller/nccl.sock",
            ) from None

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket and remove its path."""
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def drain(self, processes: Mapping[int, TrainingProcess]) -> list[Told]:
        """Return what the training ``processes`` (by pid) have told, MOST messages at most."""
        told: list[Told] = []
        for _ in range(MOST):
            try:
                data, ancillary, flags, _ = self._socket.recvmsg(
                    LONGEST, socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(64)
                )
            except BlockingIOError:
                break
            pid, user = _credentials(ancillary)
            process = processes.get(pid)
            if process is None or self._user(process) != user:
                self.refused["not a training process"] += 1
            elif flags & socket.MSG_TRUNC:
                self.refused["too long"] += 1
            else:
                try:
                    told.append(Told(pid, process.rank.job, parse(data)))
                except MessageError as error:
                    self.refused[str(error)] += 1
        if len(self._users) > 2 * len(processes) + MOST:
            self._users.clear()
        return told

    def _user(self, process: TrainingProcess) -> int | None:
        """Return the real user of ``process``; None where it has gone."""
        key = (process.pid, process.ticks)
        if key not in self._users:
            self._users[key] = _real_user(f"{self._proc}/{process.pid}/status")
        return self._users[key]


def _real_user(status: str) -> int | None:
    try:
        with open(status, encoding="ascii", errors="replace") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("Uid:")), None)
    except (OSError, ValueError, IndexError):
        return None


def _credentials(ancillary: list[tuple[int, int, bytes]]) -> tuple[int, int]:
    """Return pid and user of the sender; close whatever descriptors it sent along."""
    pid, user = 0, -1
    for level, kind, data in ancillary:
        if level != socket.SOL_SOCKET:
            continue
        if kind == socket.SCM_CREDENTIALS and len(data) >= _CREDENTIALS.size:
            pid, user, _ = _CREDENTIALS.unpack_from(data)
        elif kind == socket.SCM_RIGHTS:
            descriptors = array.array("i")
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
            for descriptor in descriptors:
                os.close(descriptor)
    return pid, user


def _remove_stale(path: Path) -> None:
    """Remove a socket that an agent which died has left; one that is in use stays, and binding fails."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
