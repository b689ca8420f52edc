"""A FUSE file system of one empty file, ``train.log``, that stops to answer when its process is stopped.

`MOUNT` speaks the kernel's own protocol (include/uapi/linux/fuse.h), so that nothing has to be installed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MOUNT = r"""
import ctypes, os, struct, sys

LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE = 1, 2, 3, 4, 14, 15, 16, 17, 18
FLUSH, INIT, OPENDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET = 25, 26, 27, 29, 36, 42
DIRECT_IO, ENOSYS, ENOENT = 1, 38, 2

device = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
if libc.mount(b"hanging", os.fsencode(sys.argv[1]), b"fuse", 0, options.encode()):
    sys.exit(os.strerror(ctypes.get_errno()))
print("mounted", flush=True)
content = bytearray()


def attributes(node):
    mode, size = (0o40755, 0) if node == 1 else (0o100666, len(content))
    return struct.pack("<QQQQQQIIIIIIIIII", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


while True:
    request = os.read(device, 1 << 20)
    _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
    body = request[40:]
    error, answer = 0, b""
    if opcode == INIT:
        answer = struct.pack("<IIIIHHIIHHI28x", 7, 31, 65536, 0, 12, 9, 65536, 1, 16, 0, 0)
    elif opcode == LOOKUP and body.rstrip(b"\0") == b"train.log":
        answer = struct.pack("<QQQQII", 2, 0, 0, 0, 0, 0) + attributes(2)
    elif opcode in (GETATTR, SETATTR):
        answer = struct.pack("<QII", 0, 0, 0) + attributes(node)
    elif opcode in (OPEN, OPENDIR):
        answer = struct.pack("<QII", 0, DIRECT_IO if opcode == OPEN else 0, 0)
    elif opcode == READ:
        _, offset, size = struct.unpack_from("<QQI", body)
        answer = bytes(content[offset:offset + size])
    elif opcode == WRITE:
        _, offset, size = struct.unpack_from("<QQI", body)
        content[offset:offset + size] = body[40:40 + size]
        answer = struct.pack("<II", size, 0)
    elif opcode == STATFS:
        answer = struct.pack("<QQQQQIII28x", 9, 9, 9, 9, 9, 4096, 255, 4096)
    elif opcode in (FORGET, BATCH_FORGET, INTERRUPT):
        continue
    elif opcode not in (FLUSH, RELEASE, RELEASEDIR):
        error = ENOENT if opcode == LOOKUP else ENOSYS
    os.write(device, struct.pack("<IiQ", 16 + len(answer), -error, unique) + answer)
"""


class HangingFiles:
    """``log`` is the one file."""

    def __init__(self, process: subprocess.Popen[str], directory: Path) -> None:
        self._process = process
        self.log = directory / "train.log"

    def stop(self) -> None:
        """Answer nothing from now on."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)

    def go_on(self) -> None:
        """Answer all that has been asked meanwhile, and go on."""
        self._process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def hanging_files(directory: Path) -> Iterator[HangingFiles]:
    """Mount one at ``directory``. Raises OSError where that is not allowed here."""
    process = subprocess.Popen([sys.executable, "-c", MOUNT, directory], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        if process.stdout.readline() != "mounted\n":
            raise PermissionError("no FUSE file system can be mounted here")
        yield HangingFiles(process, directory)
    finally:
        process.kill()  # which aborts whatever still hangs
        process.wait()
        process.stdout.close()
        ctypes.CDLL(None).umount2(os.fsencode(directory), 2)  # MNT_DETACH
