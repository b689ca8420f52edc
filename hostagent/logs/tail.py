"""Following a growing file: rotation, truncation and replacement, without ever blocking."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from hostagent.logs.watch import Watcher

CHUNK = 262_144
"""Most bytes one read returns, so that a large backlog is worked off in small steps."""

Identity = tuple[int, int]
"""Device and inode: which file it is, whatever its name."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What a read gave. ``restarted``: it does not continue what came before (truncated, or another file)."""

    data: bytes
    restarted: bool = False


NOTHING = Piece(b"")


class Tail:
    """Follows the regular file at ``path``, which may be a ``/proc/PID/fd/N``.

    - renamed, and still written to: followed, for the open file is;
    - another file at ``path`` (rotated, reopened): the old one is read to its end, then the new from its
      start;
    - truncated (copytruncate): read again from the start, skipping the hole that a writer at its own offset
      leaves;
    - removed: the open file is read to its end.

    A path that is not a regular file, or may not be opened, gives nothing as long as that is so. A file
    truncated and grown past the old position between two reads cannot be told from growth.
    """

    def __init__(self, path: str, start: int = 0, watcher: Watcher | None = None) -> None:
        """Follow ``path``, beginning at byte ``start`` of the file that is there first.

        ``watcher`` tells when there may be something to read.
        """
        self.path = path
        self.identity: Identity | None = None
        """The file that is open; None before the first read."""
        self.behind = False
        """There was more to read than one read takes."""
        self._start = start
        self._watcher = watcher
        self._watch = -1
        self._descriptor = -1
        self._position = 0

    def close(self) -> None:
        """Close the file. Reading again opens it anew, from the start."""
        if self._descriptor >= 0:
            if self._watcher is not None:
                self._watcher.remove(self._watch)
            os.close(self._descriptor)
        self._descriptor, self.identity, self._position = -1, None, 0

    def read(self) -> Piece:
        """Return up to CHUNK new bytes. Costs one ``stat`` when there are none."""
        try:
            now = os.stat(self.path)
        except OSError:
            return self._take(self._size(), restarted=False)
        identity = (now.st_dev, now.st_ino)
        if identity == self.identity:
            restarted = now.st_size < self._position
            if restarted:
                self._position = 0
            return self._take(now.st_size, restarted=restarted)
        rest = self._take(self._size(), restarted=False)
        if rest.data:
            return rest
        replaced = self.identity is not None
        if not (stat.S_ISREG(now.st_mode) and self._open()):
            return NOTHING
        return self._take(self._size(), restarted=replaced)

    def _size(self) -> int:
        return os.fstat(self._descriptor).st_size if self._descriptor >= 0 else 0

    def _open(self) -> bool:
        try:
            # Never wait in open(): what was a regular file a moment ago may be a FIFO by now.
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            return False
        opened = os.fstat(descriptor)
        if not stat.S_ISREG(opened.st_mode):
            os.close(descriptor)
            return False
        self.close()
        self._descriptor, self.identity = descriptor, (opened.st_dev, opened.st_ino)
        if self._watcher is not None:
            self._watch = self._watcher.add(descriptor)
        self._position, self._start = min(self._start, opened.st_size), 0
        return True

    def _take(self, size: int, *, restarted: bool) -> Piece:
        if size <= self._position:
            return Piece(b"", restarted) if restarted else NOTHING
        try:
            self._position = os.lseek(self._descriptor, self._position, os.SEEK_DATA)
            data = os.pread(self._descriptor, CHUNK, self._position)
        except OSError:
            # Nothing but a hole (ENXIO), or the file system failed us: the next read tries again.
            return Piece(b"", restarted) if restarted else NOTHING
        self._position += len(data)
        self.behind = len(data) == CHUNK
        return Piece(data, restarted)
