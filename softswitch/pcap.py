"""Packets of a port in two pcap files, ``INTERFACE_in.pcap`` and ``INTERFACE_out.pcap``, as bmv2 writes them.

The format is the classic one (draft-ietf-opsawg-pcap): little-endian, microseconds, Ethernet.
"""

from __future__ import annotations

import errno
import os
import struct
import time
from collections.abc import Iterable
from io import FileIO
from pathlib import Path

import structlog

from leveller.errors import UserError

_log = structlog.get_logger(__name__)

_MAGIC, _ETHERNET, _SNAPLEN = 0xA1B2C3D4, 1, 0x40000
_FILE_HEADER = struct.Struct("<IHHiIII")
_RECORD_HEADER = struct.Struct("<IIII")


class Capture:
    """The two files of one port. A full disk ends the capture and not the switch."""

    def __init__(self, directory: Path, interface: str) -> None:
        """Make the files anew. Raises UserError where they cannot be written."""
        self._files: list[FileIO] = []
        try:
            for way in ("in", "out"):
                file = (directory / f"{interface}_{way}.pcap").open("wb", buffering=0)
                self._files.append(file)
                file.write(_FILE_HEADER.pack(_MAGIC, 2, 4, 0, 0, _SNAPLEN, _ETHERNET))
        except OSError as error:
            self.close()
            raise UserError(
                f"--pcap: {interface}'s packets cannot be written into {directory} ({error.strerror})",
                "name a directory that is there",
            ) from None

    def received(self, frames: Iterable[bytes]) -> None:
        """Write what came in by the port, as the program gets it."""
        self._write(0, frames)

    def sent(self, frame: bytes | bytearray) -> None:
        """Write what goes into one of the port's queues."""
        self._write(1, (frame,))

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()
        self._files = []

    def _write(self, way: int, frames: Iterable[bytes | bytearray]) -> None:
        if not self._files:
            return
        stamp = divmod(time.time_ns() // 1000, 10**6)
        records = b"".join(_RECORD_HEADER.pack(*stamp, len(frame), len(frame)) + frame for frame in frames)
        try:
            if self._files[way].write(records) < len(records):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            _log.warning("the packets of a port are not captured any more", reason=error.strerror)
            self.close()
