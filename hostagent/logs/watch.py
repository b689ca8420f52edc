"""Being told when a log grows, by inotify, instead of looking again and again.

The kernel tells of every write by a process of this host, on any file system, and the writers of these logs
are processes of this host. What it does not tell (another file under the same name, a full watch table) is
found by the occasional look that the agent takes anyway.
"""

from __future__ import annotations

import ctypes
import os

from leveller.errors import UserError

_IN_MODIFY = 0x2
_NONE = -1

_libc = ctypes.CDLL(None, use_errno=True)


class Watcher:
    """Watches open files. Its ``fileno`` is readable when one of them was written to. Close it when done."""

    def __init__(self) -> None:
        """Open it. Raises UserError where the user has no inotify instance left."""
        self._descriptor = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise UserError(
                f"logs cannot be watched ({os.strerror(ctypes.get_errno())})",
                "raise the sysctl fs.inotify.max_user_instances",
            )

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return int(self._descriptor)

    def close(self) -> None:
        """Close it, and with it every watch."""
        os.close(self._descriptor)

    def add(self, descriptor: int) -> int:
        """Watch the file that is open as ``descriptor``; return the watch for `remove`."""
        # Its path may be another file's by now; the descriptor's link is this file, even if it was deleted.
        path = f"/proc/thread-self/fd/{descriptor}".encode()
        return int(_libc.inotify_add_watch(self._descriptor, path, _IN_MODIFY))

    def remove(self, watch: int) -> None:
        """End a watch; one that could not be set up is no error."""
        if watch != _NONE:
            _libc.inotify_rm_watch(self._descriptor, watch)

    def drain(self) -> bool:
        """Forget what was told so far; say whether it was anything."""
        told = False
        try:
            while os.read(self._descriptor, 65_536):
                told = True
        except BlockingIOError:
            pass
        return told
