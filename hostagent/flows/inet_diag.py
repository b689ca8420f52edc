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

from hostagent.flows.connection import TCP, Connection, FiveTuple, Listing

_NETLINK_SOCK_DIAG = 4
_TCPDIAG_GETSOCK, _SOCK_DIAG_BY_FAMILY = 18, 20
_NLM_F_REQUEST, _NLM_F_REQUEST_DUMP = 0x1, 0x301
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_DONE_SIZE = 20
_INET_DIAG_INFO = 2

_STATES = sum(1 << state for state in (1, 4, 8, 9, 11))
"""ESTABLISHED, FIN_WAIT1, CLOSE_WAIT, LAST_ACK and CLOSING: those in which payload may still be sent."""

_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port id
_REQUEST = struct.Struct("=BBBBI" + "2s2s16s16sIQ")  # inet_diag_req_v2 with its inet_diag_sockid
_LIST = struct.Struct("=BBBB" + "48x" + "II")  # inet_diag_req, of any socket: extensions and states
_MESSAGE = struct.Struct("!BBBBHH16s16s")  # inet_diag_msg up to the addresses: family, .., ports, addresses
_COOKIE_AT = 16 + _MESSAGE.size + 4  # in the whole netlink message, as the next ones
_INODE_AT = 16 + 68
_ATTRIBUTES_AT = 16 + 72
_ATTRIBUTE = struct.Struct("=HH")  # length, type
_TCPI_LAST_DATA_SENT_AT = 44
_TCPI_BYTES_ACKED_AT = 120  # and bytes_received after it
_TCPI_SEGMENTS_AT = 136  # segs_out and segs_in, 32 bits each: nothing is carried without one
_TCPI_BYTES_SENT_AT = 200  # and bytes_retrans after it; since Linux 4.19
_INFO_SIZE = _TCPI_BYTES_SENT_AT + 16
_MAPPED = bytes(10) + b"\xff\xff"  # ::ffff:0:0/96, IPv4 through an IPv6 socket

_BUFFER = 1 << 18

_DESTROY_GROUPS = 1 << 0 | 1 << 2  # SKNLGRP_INET_TCP_DESTROY, SKNLGRP_INET6_TCP_DESTROY
_DESTROY_BUFFER = 1 << 20


class InetDiag:
    """Lists TCP connections. Close it, or use it as a context manager."""

    _buffer = bytearray(_BUFFER)  # of all: there may be many, and one is asked at a time

    def __init__(self) -> None:
        """Open the netlink socket, in the network namespace of the calling thread. Raises OSError."""
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG
        )
        self._socket.bind((0, 0))
        self._socket.settimeout(1.0)  # the kernel answers while we ask; never hang on it all the same
        self._sequence = 0
        self._segments: dict[int, int] = {}  # of the known connections when they were listed last, by cookie

    def __enter__(self) -> InetDiag:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the netlink socket."""
        self._socket.close()

    def connections(
        self, ignored: Container[int] = frozenset(), known: Container[int] = frozenset()
    ) -> Listing:
        """List every TCP connection that may send, but for those whose cookie is ``ignored``.

        Of the ``known`` ones, only those are told in full that have carried something since the last call:
        what stands still costs next to nothing, which is what makes a host with many sockets cheap.
        Raises OSError.
        """
        found: list[Connection] = []
        present: list[int] = []
        for piece in self._dump():
            found += _read(piece, ignored, known, self._segments, present)
        if len(self._segments) > len(present):
            self._segments = {cookie: self._segments[cookie] for cookie in present}
        return Listing(found, present)

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

    def _dump(self, kind: int = _TCPDIAG_GETSOCK) -> Iterator[memoryview]:
        """Yield the answer in pieces of whole inet_diag_msg; each is valid until the next is asked for.

        This request, the older one, gives IPv4 and IPv6 in one walk of the kernel's table; the newer takes
        one for each.
        """
        self._sequence += 1
        request = _LIST.pack(0, 0, 0, 1 << (_INET_DIAG_INFO - 1), _STATES, 0)
        size = _HEADER.size + len(request)
        self._socket.send(_HEADER.pack(size, kind, _NLM_F_REQUEST_DUMP, self._sequence, 0) + request)
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
    piece: memoryview,
    ignored: Container[int],
    known: Container[int],
    segments: dict[int, int],
    present: list[int],
) -> list[Connection]:
    """Read a piece of inet_diag_msg, netlink headers and all, as `InetDiag.connections` says.

    ``segments`` has how many the known ones had the last time, and is brought up to date.
    """
    found: list[Connection] = []
    length, layout = _alike(piece)
    if layout is not None:
        # The messages of a dump are nearly always alike: then only those are read that say anything new.
        for index, (cookie, now) in enumerate(layout.iter_unpack(piece)):
            if segments.get(cookie) == now:
                present.append(cookie)
                continue
            if cookie in known:
                present.append(cookie)
                segments[cookie] = now
            elif cookie in ignored:
                continue
            found.append(parse_message(piece[index * length : (index + 1) * length]))
        return found
    offset = 0
    while offset + _ATTRIBUTES_AT <= len(piece):
        (length,) = struct.unpack_from("=I", piece, offset)
        connection = parse_message(piece[offset : offset + length])
        if connection.cookie in known:
            present.append(connection.cookie)
            segments[connection.cookie] = 0
        if connection.cookie not in ignored:
            found.append(connection)
        offset += (length + 3) & ~3
    return found


def _alike(piece: memoryview) -> tuple[int, struct.Struct | None]:
    """Return the length of the messages in ``piece``, and their layout where all have the same."""
    (length,), info_at = struct.unpack_from("=I", piece), _find_info(piece)
    count, rest = divmod(len(piece), length)
    if info_at is None or rest or length % 4:
        return length, None
    words = piece.cast("I")
    for at in (0, info_at // 4 - 1):  # the message's length, and the attribute's with its type
        if words[at :: length // 4].tolist().count(words[at]) < count:
            return length, None
    return length, _layout(length, info_at)


@lru_cache(8)
def _layout(length: int, info_at: int) -> struct.Struct:
    """Return the layout of a whole message: its cookie and its segments."""
    at = info_at + _TCPI_SEGMENTS_AT
    return struct.Struct(f"={_COOKIE_AT}xQ{at - _COOKIE_AT - 8}xQ{length - at - 8}x")


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
