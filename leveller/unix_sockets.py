"""Whether a gRPC server may listen on a Unix socket: gRPC itself would take it from one that is running."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path


def check(address: str) -> None:
    """Raise OSError, saying why, where nobody should listen on ``address``, ``unix:PATH``.

    A socket that a killed process left behind is in nobody's way; one that answers is.
    """
    path = Path(address.removeprefix("unix:"))
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"there is no directory {path.parent}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"the directory {path.parent} cannot be written to")
    if path.exists() and not path.is_socket():
        raise FileExistsError(errno.EEXIST, f"{path} is something else than a socket")
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return
    raise OSError(errno.EADDRINUSE, "another process listens there")
