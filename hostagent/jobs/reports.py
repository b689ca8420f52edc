"""Where training code tells the agent of its progress; the other end of `hostagent.report`.

A datagram is ``1 FIRST NOW``: the version, the sender's count when it began and its count now. Who sent it is
the kernel's word (SCM_CREDENTIALS), not the sender's.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
import struct
from typing import NamedTuple

from hostagent.report import ABSTRACT

MAX_READ = 256
"""Most datagrams that are taken at a time."""

_CREDENTIALS = struct.Struct("=iII")  # pid, uid, gid
_WORDS = re.compile(rb"1 (-?\d{1,40}) (-?\d{1,40})")


class Word(NamedTuple):
    """What process ``pid`` says: its count when it began, and its count now, as text."""

    pid: int
    first: str
    now: str


class ReportSocket:
    """Listens to the training code on this host. Close it when done."""

    def __init__(self, path: str = "") -> None:
        """Listen at ``path``, or where `hostagent.report` looks. Raises OSError where that cannot be."""
        self._path = path
        self._socket = socket.socket(
            socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        )
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            if path and _is_dead(path):
                os.unlink(path)
            self._socket.bind(path or ABSTRACT)
            if path:
                os.chmod(path, 0o666)  # every tenant may tell of its own processes  # noqa: S103
        except OSError:
            self._socket.close()
            raise
        self.malformed = 0
        """Datagrams that said nothing."""

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._socket.fileno()

    def close(self) -> None:
        """Listen no more."""
        if self._path:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
        self._socket.close()

    def read(self) -> list[Word]:
        """Return what has been said since the last read."""
        words: list[Word] = []
        for _ in range(MAX_READ):
            try:
                data, ancillary, _, _ = self._socket.recvmsg(128, socket.CMSG_SPACE(_CREDENTIALS.size))
            except OSError:
                break
            said = _WORDS.fullmatch(data)
            pid = next((_pid(item[2]) for item in ancillary if item[1] == socket.SCM_CREDENTIALS), 0)
            if said is None or not pid:
                self.malformed += 1
                continue
            words.append(Word(pid, said[1].decode(), said[2].decode()))
        return words


def _pid(credentials: bytes) -> int:
    return int(_CREDENTIALS.unpack_from(credentials)[0])


def _is_dead(path: str) -> bool:
    """Say whether a socket is at ``path`` that nobody listens to."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return False
    except OSError:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
