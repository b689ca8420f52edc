"""Where a log is, and opening it without trusting who named it.

A tenant chooses the names of its files, what its symbolic links point to, and what its root directory is. A
log that a process has open is opened through ``/proc/PID/fd/N``, which is that file and no other, whatever it
is called. A log that is only named is opened within the root of the process that named it (openat2(2),
RESOLVE_IN_ROOT, Linux 5.6), so that no link leads out of a container, and only where it belongs to that
process's user.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from dataclasses import dataclass

_SYS_OPENAT2 = 437  # the same on every architecture
_RESOLVE_NO_MAGICLINKS, _RESOLVE_IN_ROOT = 0x02, 0x10
_HOW = struct.Struct("=QQQ")  # open_how: flags, mode, resolve
_KERNELS = frozenset(
    {0x9FA0, 0x62656572, 0x64626720, 0x74726163, 0x27E0EB, 0x63677270, 0x1CD1, 0x73636673, 0x19800202}
)
"""File systems (statfs(2)'s f_type) whose files are the kernel's own words, and may be about the reader.

They are proc, sysfs, debugfs, tracefs, cgroup and cgroup2, devpts, securityfs and mqueue.
"""

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Place:
    """A file: ``/proc/PID/fd/N``, or a name within ``root`` that must belong to user ``owner``."""

    path: str
    root: str | None = None
    owner: int | None = None

    def __str__(self) -> str:
        text = self.path if self.root is None else f"{self.path} in {self.root}"
        # A name may be any bytes, and what says it, a log or a file of the agent's, is to be text.
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")

    def stat(self) -> os.stat_result:
        """Return what is there now. Raises OSError where nothing is, or nothing that may be read."""
        if self.root is None:
            return os.stat(self.path)
        descriptor = self._point()
        try:
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)

    def open(self) -> int:
        """Open it for reading, where it is a regular file on a disk. Raises OSError, else.

        Anything else is not even opened: that alone may wait (a FIFO), do something (a device) or take away
        what others were to read (the kernel's own files).
        """
        point = self._point()
        try:
            if not stat.S_ISREG(os.fstat(point).st_mode):
                raise PermissionError(f"{self.path} is no file on a disk")
            return os.open(f"/proc/thread-self/fd/{point}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        finally:
            os.close(point)

    def _point(self) -> int:
        """Return a descriptor by which nothing can be read, of what is there now. Raises OSError."""
        descriptor = os.open(self.path, os.O_PATH | os.O_CLOEXEC) if self.root is None else self._within()
        refused = ""
        if self.owner is not None and os.fstat(descriptor).st_uid != self.owner:
            refused = "belongs to another user than the process that named it"
        elif _file_system(descriptor) in _KERNELS:
            refused = "is no file on a disk"
        if refused:
            os.close(descriptor)
            raise PermissionError(f"{self.path} {refused}")
        return descriptor

    def _within(self) -> int:
        root = os.open(self.root or "/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            how = _HOW.pack(os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS)
            name = os.fsencode(self.path)
            descriptor = int(_libc.syscall(_SYS_OPENAT2, root, name, how, ctypes.c_size_t(len(how))))
            if descriptor < 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), self.path)
            return descriptor
        finally:
            os.close(root)


def _file_system(descriptor: int) -> int:
    """Return the type of the file system that an open file is on; 0 where the kernel does not tell."""
    buffer = ctypes.create_string_buffer(256)
    if _libc.fstatfs(descriptor, buffer) != 0:
        return 0
    return int.from_bytes(buffer.raw[: ctypes.sizeof(ctypes.c_long)], sys.byteorder)


GONE = Place("")
"""The place of a log that nobody writes any more."""
