"""The TCP connections of a network namespace, by netlink's inet_diag.

Spoken over a plain socket because pyroute2's DiagSocket cannot be used inside a running event loop, and
builds an object per field where this goes over ten thousand sockets a second. Layouts are those of
``linux/netlink.h``, ``linux/inet_diag.h`` and ``linux/tcp.h`` (which only ever grow at the end).
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Container, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

from hostagent.flows.connection import TCP, Connection, FiveTuple

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST, _NLM_F_REQUEST_DUMP = 0x1, 0x301
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_DONE_SIZE = 20
_INET_DIAG_INFO = 2
_NO_COOKIE = 0xFFFF_FFFF_FFFF_FFFF

_STATES = sum(1 << state for state in (1, 4, 8, 9, 11))
"""ESTABLISHED, FIN_WAIT1, CLOSE_WAIT, LAST_ACK and CLOSING: those in which payload may still be sent."""

_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port id
_REQUEST = struct.Struct("=BBBBI" + "2s2s16s16sIQ")  # inet_diag_req_v2 with its inet_diag_sockid
_MESSAGE = struct.Struct("!BBBBHH16s16s")  # inet_diag_msg up to the addresses: family, .., ports, addresses
_COOKIE_AT = 16 + _MESSAGE.size + 4  # in the whole netlink message, as the next ones
_INODE_AT = 16 + 68
_ATTRIBUTES_AT = 16 + 72
_ATTRIBUTE = struct.Struct("=HH")  # length, type
_TCPI_LAST_DATA_SENT_AT = 44
_TCPI_BYTES_ACKED_AT = 120  # and bytes_received after it
_TCPI_BYTES_SENT_AT = 200  # and bytes_retrans after it; since Linux 4.19
_INFO_SIZE = _TCPI_BYTES_SENT_AT + 16
_MAPPED = bytes(10) + b"\xff\xff"  # ::ffff:0:0/96, IPv4 through an IPv6 socket

_NOTHING: Mapping[int, FiveTuple] = MappingProxyType({})

_BUFFER = 1 << 18

_DESTROY_GROUPS = 1 << 0 | 1 << 2  # SKNLGRP_INET_TCP_DESTROY, SKNLGRP_INET6_TCP_DESTROY
_DESTROY_BUFFER = 1 << 20


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

    def connections(
        self, ignored: Container[int] = frozenset(), known: Mapping[int, FiveTuple] = _NOTHING
    ) -> list[Connection]:
        """Return every TCP connection that may send, but for those whose cookie is ``ignored``.

        Those cost next to nothing, which is what makes a host with many sockets cheap, and those that are
        ``known`` (cookie to 5-tuple) less than others. Raises OSError.
        """
        found: list[Connection] = []
        for family in (socket.AF_INET, socket.AF_INET6):
            for piece in self._dump(family):
                found += _read(piece, ignored, known)
        return found

    def lookup(self, known: Mapping[int, FiveTuple]) -> list[Connection]:
        """Return those of the ``known`` connections (cookie to 5-tuple) that the kernel finds.

        Each costs some microseconds, while listing walks the whole table of the host's connections. One that
        is bound to a device is not found. Raises OSError.
        """
        found: list[Connection] = []
        for cookie, key in known.items():
            self._sequence += 1
            ports = key.source_port.to_bytes(2), key.destination_port.to_bytes(2)
            family = socket.AF_INET if len(key.source) == 4 else socket.AF_INET6
            request = _REQUEST.pack(
                family, TCP, 1 << (_INET_DIAG_INFO - 1), 0, 0, *ports, key.source, key.destination, 0, cookie
            )
            size = _HEADER.size + len(request)
            self._socket.send(
                _HEADER.pack(size, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, self._sequence, 0) + request
            )
            received = self._socket.recv_into(self._buffer)
            length, kind, _, sequence, _ = _HEADER.unpack_from(self._buffer)
            if kind == _SOCK_DIAG_BY_FAMILY and sequence == self._sequence and length <= received:
                connection = parse_message(memoryview(self._buffer)[:length])
                found.append(connection._replace(tuple=key))
        return found

    def _dump(self, family: int) -> Iterator[memoryview]:
        """Yield the answer in pieces of whole inet_diag_msg; each is valid until the next is asked for."""
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
                if sequence != self._sequence:  # what is left of a dump that timed out
                    offset += (length + 3) & ~3
                elif kind == _NLMSG_DONE:
                    return
                elif kind == _NLMSG_ERROR:
                    code = -struct.unpack_from("=i", view, offset + _HEADER.size)[0]
                    raise OSError(code, f"inet_diag: {os.strerror(code)}")
                else:
                    # The rest is ours: a piece is of one dump. Its end may be in the last one (Linux 6.9).
                    last = self._is_end(view[:received])
                    yield view[offset : received - _DONE_SIZE if last else received]
                    if last:
                        return
                    break

    def _is_end(self, piece: memoryview) -> bool:
        length, kind, _, sequence, _ = _HEADER.unpack_from(piece, len(piece) - _DONE_SIZE)
        return (length, kind, sequence) == (_DONE_SIZE, _NLMSG_DONE, self._sequence)


class Destroyed:
    """Hears of every TCP socket that is destroyed, with its last figures. Close it when done.

    So a connection that came and went between two listings is known of, too. Needs no privilege.
    """

    def __init__(self) -> None:
        """Open the netlink socket, in the network namespace of the calling thread. Raises OSError."""
        self._socket = socket.socket(
            socket.AF_NETLINK,
            socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK,
            _NETLINK_SOCK_DIAG,
        )
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _DESTROY_BUFFER)
        self._socket.bind((0, _DESTROY_GROUPS))
        self.overflows = 0
        """How often more were destroyed at once than the kernel keeps for us."""

    def close(self) -> None:
        """Close the netlink socket."""
        self._socket.close()

    def drain(self, most: int) -> list[Connection]:
        """Return the sockets destroyed since the last call, ``most`` at most; the others are kept."""
        gone: list[Connection] = []
        while len(gone) < most:
            try:
                message = self._socket.recv(4096)
            except BlockingIOError:
                break
            except OSError:  # ENOBUFS: some are lost
                self.overflows += 1
                continue
            if len(message) >= _ATTRIBUTES_AT:
                gone.append(parse_message(message))
        return gone


def parse_message(message: memoryview | bytes) -> Connection:
    """Read one inet_diag_msg with its netlink header and attributes."""
    (cookie,) = struct.unpack_from("=Q", message, _COOKIE_AT)
    (inode,) = struct.unpack_from("=I", message, _INODE_AT)
    return Connection(_tuple(message), cookie, inode, *_figures(message))


def _read(
    piece: memoryview, ignored: Container[int], known: Mapping[int, FiveTuple] = _NOTHING
) -> list[Connection]:
    """Read a piece of inet_diag_msg, netlink headers and all.

    The messages of a dump are nearly always alike in layout: then all are unpacked in one go.
    """
    (length,), found = struct.unpack_from("=I", piece), _find_info(piece)
    if found is not None and len(piece) % length == 0 and length % 4 == 0:
        layout = _layout(length, found)
        attribute = piece[found - 4 : found]
        records = list(layout.iter_unpack(piece))
        if all(record[0] == length and record[3] == attribute for record in records):
            return [
                Connection(
                    known.get(cookie) or _tuple(piece[index * length : index * length + _ATTRIBUTES_AT]),
                    cookie,
                    inode,
                    sent - repeated if sent > repeated else 0,
                    received,
                    quiet,
                )
                for index, (_, cookie, inode, _, quiet, received, sent, repeated) in enumerate(records)
                if cookie not in ignored
            ]
    listed: list[Connection] = []
    offset = 0
    while offset + _ATTRIBUTES_AT <= len(piece):
        (length,) = struct.unpack_from("=I", piece, offset)
        connection = parse_message(piece[offset : offset + length])
        if connection.cookie not in ignored:
            listed.append(connection)
        offset += (length + 3) & ~3
    return listed


@lru_cache(8)
def _layout(length: int, info_at: int) -> struct.Struct:
    """Return the layout of a whole message: length, cookie, inode, attribute header, figures."""
    gap = info_at - 4 - (_INODE_AT + 4)
    fields = f"=I{_COOKIE_AT - 4}xQ{_INODE_AT - _COOKIE_AT - 8}xI{gap}x4s"
    fields += f"{_TCPI_LAST_DATA_SENT_AT}xI{_TCPI_BYTES_ACKED_AT + 8 - _TCPI_LAST_DATA_SENT_AT - 4}xQ"
    fields += f"{_TCPI_BYTES_SENT_AT - _TCPI_BYTES_ACKED_AT - 16}xQQ"
    return struct.Struct(f"{fields}{length - info_at - _INFO_SIZE}x")


def _find_info(message: memoryview | bytes) -> int | None:
    """Return where in ``message`` a whole tcp_info begins, of Linux 4.19 or later."""
    (length,) = struct.unpack_from("=I", message)
    info, size = _info(message[:length])
    return info if size >= _INFO_SIZE else None


def _tuple(message: memoryview | bytes) -> FiveTuple:
    family, _, _, _, source_port, destination_port, source, destination = _MESSAGE.unpack_from(message, 16)
    if family == socket.AF_INET:
        source, destination = source[:4], destination[:4]
    elif source.startswith(_MAPPED):
        source, destination = source[12:], destination[12:]
    return FiveTuple(source, destination, TCP, source_port, destination_port)


def _info(message: memoryview | bytes) -> tuple[int, int]:
    """Return where the tcp_info of a message is, and its size; (0, 0) where it has none."""
    offset = _ATTRIBUTES_AT
    while offset + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, offset)
        if length < _ATTRIBUTE.size:
            break
        if kind == _INET_DIAG_INFO:
            return offset + _ATTRIBUTE.size, min(length, len(message) - offset) - _ATTRIBUTE.size
        offset += (length + 3) & ~3
    return 0, 0


def _figures(message: memoryview | bytes) -> tuple[int, int, int]:
    """Return bytes sent, bytes received and ms since the last were sent; 0 for what the kernel is too old."""
    info, size = _info(message)
    if size < _TCPI_BYTES_ACKED_AT + 16:
        return 0, 0, 0
    (quiet,) = struct.unpack_from("=I", message, info + _TCPI_LAST_DATA_SENT_AT)
    acked, received = struct.unpack_from("=QQ", message, info + _TCPI_BYTES_ACKED_AT)
    if size < _INFO_SIZE:
        return acked, received, quiet
    sent, repeated = struct.unpack_from("=QQ", message, info + _TCPI_BYTES_SENT_AT)
    return max(0, sent - repeated), received, quiet
