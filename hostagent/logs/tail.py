"""Following a growing file: rotation, truncation and replacement, without ever blocking."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from pydantic import Field

from hostagent.logs.place import Place
from hostagent.logs.watch import Watcher

CHUNK = 131_072
"""Most bytes one read returns, so that a large backlog is worked off in small steps."""

Identity = tuple[int, int]
"""Device and inode: which file it is, whatever its name."""


MARKED = 64
"""By so many bytes before it a place in a file is known again."""

_Number = Annotated[int, Field(ge=0, lt=1 << 64)]


class Bookmark(NamedTuple):
    """A place in a file, to go on from there later, if what stood before it is still the same."""

    device: _Number
    inode: _Number
    position: _Number
    digest: str
    """Of the MARKED bytes before it."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What a read gave. ``restarted``: it does not continue what came before (truncated, or another file)."""

    data: bytes
    restarted: bool = False


NOTHING = Piece(b"")

_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"PK\x03\x04", b"\x04\x22\x4d\x18")
"""How files of gzip, bzip2, zstd, xz, zip and lz4 begin."""


def is_compressed(data: bytes) -> bool:
    """Say whether a file that begins with ``data`` (6 bytes will do) is a compressed one."""
    return data.startswith(_COMPRESSED)


class Tail:
    """Follows the regular file at a place.

    - renamed, and still written to: followed, for the open file is;
    - another file at that place (rotated, reopened): the old one is read to its end, then the new from its
      start;
    - truncated (copytruncate): read again from the start, skipping the hole that a writer at its own offset
      leaves;
    - removed: the open file is read to its end.

    What is not a regular file, is compressed (an old log) or may not be opened, gives nothing as long as that
    is so. A file truncated and grown past the old position between two reads cannot be told from growth.
    """

    def __init__(self, place: Place, start: int | Bookmark = 0, watcher: Watcher | None = None) -> None:
        """Follow what is at ``place``, beginning at byte ``start`` of the file that is there first.

        That may be a bookmark: where its file is another one now, or was truncated, it begins at the start.

        ``watcher`` tells when there may be something to read.
        """
        self.place = place
        """Where it is; may be set to another place of the same file."""
        self.identity: Identity | None = None
        """The file that is open; None before the first read."""
        self.behind = False
        """There was more to read than one read takes."""
        self.modified_ns = 0
        """When the file was last written to, by its own time stamp (Unix time)."""
        self._start = start
        self._ignored: Identity | None = None
        self._ignored_size = 0  # a smaller one is another file with the same inode number
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

    def bookmark(self, back: int = 0) -> Bookmark | None:
        """Return the place ``back`` bytes before what is read next; None where no file is open."""
        if self.identity is None:
            return None
        position = max(0, self._position - back)
        return Bookmark(*self.identity, position, _digest(self._descriptor, position))

    def read(self) -> Piece:
        """Return up to CHUNK new bytes. Costs one ``stat`` when there are none."""
        try:
            now = self.place.stat()
        except OSError:
            return self._take(self._size(), restarted=False)
        identity = (now.st_dev, now.st_ino)
        if identity == self._ignored and now.st_size >= self._ignored_size:
            return NOTHING
        self.modified_ns = now.st_mtime_ns
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
        """Return the size of the open file; 0 where there is none, or its file system fails us."""
        try:
            return os.fstat(self._descriptor).st_size if self._descriptor >= 0 else 0
        except OSError:
            return 0

    def _open(self) -> bool:
        try:
            descriptor = self.place.open()
        except OSError:
            return False
        try:
            opened = os.fstat(descriptor)
            unfit = not stat.S_ISREG(opened.st_mode) or is_compressed(os.pread(descriptor, 6, 0))
        except OSError:
            os.close(descriptor)
            return False
        if unfit:
            self._ignored, self._ignored_size = (opened.st_dev, opened.st_ino), opened.st_size
            os.close(descriptor)
            return False
        self.close()
        self._descriptor, self.identity = descriptor, (opened.st_dev, opened.st_ino)
        if self._watcher is not None:
            self._watch = self._watcher.add(descriptor)
        self._position, self._start = self._begin(opened), 0
        return True

    def _begin(self, opened: os.stat_result) -> int:
        """Return where to begin in the file that was opened."""
        start = self._start
        if not isinstance(start, Bookmark):
            return min(start, opened.st_size)
        is_same = (opened.st_dev, opened.st_ino) == start[:2] and start.position <= opened.st_size
        return start.position if is_same and _digest(self._descriptor, start.position) == start.digest else 0

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


def _digest(descriptor: int, position: int) -> str:
    """Return a short digest of what stands before ``position``; empty where it cannot be read."""
    begin = max(0, position - MARKED)
    try:
        return hashlib.blake2b(os.pread(descriptor, position - begin, begin), digest_size=8).hexdigest()
    except OSError:
        return ""
