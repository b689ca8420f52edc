"""The TCP connections of this network namespace, by netlink's inet_diag.

Spoken over a plain socket because pyroute2's DiagSocket cannot be used inside a running event loop, and
builds an object per field where this is called ten times a second. Layouts are those of
``linux/netlink.h``, ``linux/inet_diag.h`` and ``linux/tcp.h`` (which only ever grow at the end).
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

from hostagent.flows.connection import TCP, Connection, FiveTuple

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST_DUMP = 0x301
_NLM_F_DUMP_INTR = 0x10
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_INET_DIAG_INFO = 2
_NO_COOKIE = 0xFFFF_FFFF_FFFF_FFFF

_STATES = sum(1 << state for state in (1, 4, 8, 9, 11))
"""ESTABLISHED, FIN_WAIT1, CLOSE_WAIT, LAST_ACK and CLOSING: those in which payload may still be sent."""

_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port id
_REQUEST = struct.Struct("=BBBBI" + "2s2s16s16sIQ")  # inet_diag_req_v2 with its inet_diag_sockid
_MESSAGE = struct.Struct("!BBBBHH16s16s")  # inet_diag_msg up to the addresses: family, .., ports, addresses
_COOKIE = struct.Struct("=IQ")  # interface, cookie
_INODE_AT = 16 + 68  # in the whole netlink message, as the next ones
_ATTRIBUTES_AT = 16 + 72
_ATTRIBUTE = struct.Struct("=HH")  # length, type
_TCPI_BYTES_ACKED_AT = 120
_TCPI_BYTES_SENT_AT = 200  # and bytes_retrans after it; since Linux 4.19
_MAPPED = bytes(10) + b"\xff\xff"  # ::ffff:0:0/96, IPv4 through an IPv6 socket

_BUFFER = 1 << 18


class InetDiag:
    """Lists TCP connections. Close it, or use it as a context manager."""

    def __init__(self) -> None:
        """Open the netlink socket, in the network namespace of the calling thread. Raises OSError."""
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG
        )
        self._socket.bind((0, 0))
        self._socket.settimeout(1.0)  # the kernel answers while we ask; never hang on it all the same
        self._sequence = 0
        self._buffer = bytearray(_BUFFER)

    def __enter__(self) -> InetDiag:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the netlink socket."""
        self._socket.close()

    def connections(self) -> list[Connection]:
        """Return every TCP connection that may send. Raises OSError."""
        return [
            connection for family in (socket.AF_INET, socket.AF_INET6) for connection in self._dump(family)
        ]

    def _dump(self, family: int) -> Iterator[Connection]:
        self._sequence += 1
        request = _REQUEST.pack(
            family, TCP, 1 << (_INET_DIAG_INFO - 1), 0, _STATES, b"", b"", b"", b"", 0, _NO_COOKIE
        )
        size = _HEADER.size + len(request)
        self._socket.send(
            _HEADER.pack(size, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST_DUMP, self._sequence, 0) + request
        )
        view = memoryview(self._buffer)
        while True:
            received = self._socket.recv_into(self._buffer)
            offset = 0
            while offset + _HEADER.size <= received:
                length, kind, _, sequence, _ = _HEADER.unpack_from(view, offset)
                if length < _HEADER.size:
                    raise OSError(f"inet_diag sent a message of {length} bytes")
                # What is left of a dump that timed out has an older number.
                if sequence == self._sequence:
                    if kind == _NLMSG_DONE:
                        return
                    if kind == _NLMSG_ERROR:
                        code = -struct.unpack_from("=i", view, offset + _HEADER.size)[0]
                        raise OSError(code, f"inet_diag: {os.strerror(code)}")
                    yield parse_message(view[offset : offset + length])
                offset += (length + 3) & ~3


def parse_message(message: memoryview | bytes) -> Connection:
    """Read one inet_diag_msg with its netlink header and attributes."""
    family, _, _, _, source_port, destination_port, source, destination = _MESSAGE.unpack_from(message, 16)
    if family == socket.AF_INET:
        source, destination = source[:4], destination[:4]
    elif source.startswith(_MAPPED):
        source, destination = source[12:], destination[12:]
    _, cookie = _COOKIE.unpack_from(message, 16 + _MESSAGE.size)
    (inode,) = struct.unpack_from("=I", message, _INODE_AT)
    flow = FiveTuple(source, destination, TCP, source_port, destination_port)
    return Connection(flow, cookie, inode, _bytes_sent(message))


def _bytes_sent(message: memoryview | bytes) -> int:
    offset = _ATTRIBUTES_AT
    while offset + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, offset)
        if length < _ATTRIBUTE.size:
            break
        if kind == _INET_DIAG_INFO:
            info, size = offset + _ATTRIBUTE.size, length - _ATTRIBUTE.size
            if size >= _TCPI_BYTES_SENT_AT + 16:
                sent, repeated = struct.unpack_from("=QQ", message, info + _TCPI_BYTES_SENT_AT)
                return max(0, int(sent) - int(repeated))
            if size >= _TCPI_BYTES_ACKED_AT + 8:
                return int(struct.unpack_from("=Q", message, info + _TCPI_BYTES_ACKED_AT)[0])
        offset += (length + 3) & ~3
    return 0
