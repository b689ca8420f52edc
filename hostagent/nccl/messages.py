"""The datagrams of the NCCL plugin, read. Their layout is ``plugin.c``'s, in the host's byte order."""

from __future__ import annotations

import struct
from typing import NamedTuple

from hostagent.flows.connection import TCP, FiveTuple

MAX_RANKS = 1_000_000
LONGEST = 256
"""No datagram is longer."""

_MAGIC = 0x314E_564C
_HEADER = struct.Struct("=IIQQII")
_COMMUNICATOR = struct.Struct("=II64s")
_CONNECTION = struct.Struct("=iIIiIHH16s16s")
_COLLECTIVES = struct.Struct("=QQQQ16s")
_NO_PEER = -1
_MAPPED = bytes(10) + b"\xff\xff"  # ::ffff:0:0/96, IPv4 through an IPv6 socket


class MessageError(ValueError):
    """A datagram that is none of the plugin's."""


class Header(NamedTuple):
    """What every datagram says."""

    communicator: int
    """NCCL's hash of the communicator, the same on every rank."""
    rank: int
    now_ns: int
    """Monotonic time when it was sent."""
    dropped: int
    """Datagrams that the process could not send so far."""


class Communicator(NamedTuple):
    """A rank of a communicator, told of when it is made and now and then after."""

    header: Header
    name: str
    ranks: int
    nodes: int


class Connection(NamedTuple):
    """A connection that a collective of the communicator used: a queue pair or a socket."""

    header: Header
    peer: int | None
    """Rank at the other end."""
    is_send: bool
    queue_pair: int
    """Local number; 0 where it is a socket."""
    device: int
    """Of the queue pair, in NCCL's order."""
    socket: FiveTuple | None


class Collectives(NamedTuple):
    """Collectives (and sends and receives) that were started since the last one."""

    header: Header
    sequence: int
    """Of the last of them, in its communicator."""
    started: int
    """How many."""
    bytes: int
    first_ns: int
    """Monotonic time of the first start."""
    function: str
    """Name of the last one, such as AllReduce."""


class End(NamedTuple):
    """The communicator is no more on this rank."""

    header: Header


Message = Communicator | Connection | Collectives | End


def parse(data: bytes) -> Message:
    """Read one datagram. Raises MessageError for anything that the plugin cannot have sent."""
    if len(data) < _HEADER.size:
        raise MessageError("it is too short")
    magic, kind, communicator, now_ns, rank, dropped = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise MessageError("it is not the plugin's, or another version's")
    if rank >= MAX_RANKS:
        raise MessageError("a rank that cannot be")
    header, body = Header(communicator, rank, now_ns, dropped), data[_HEADER.size :]
    try:
        match kind:
            case 1:
                return _communicator(header, body)
            case 2:
                return _connection(header, body)
            case 3:
                sequence, count, size, first_ns, function = _COLLECTIVES.unpack(body)
                return Collectives(header, sequence, count, size, first_ns, _text(function))
            case 4 if not body:
                return End(header)
    except struct.error:
        pass
    raise MessageError("its kind or its length are unknown")


def _communicator(header: Header, body: bytes) -> Communicator:
    ranks, nodes, name = _COMMUNICATOR.unpack(body)
    if not header.rank < ranks <= MAX_RANKS or not 0 < nodes <= ranks:
        raise MessageError("a communicator of ranks that cannot be")
    return Communicator(header, _text(name), ranks, nodes)


def _connection(header: Header, body: bytes) -> Connection:
    peer, is_send, queue_pair, device, family, sport, dport, source, destination = _CONNECTION.unpack(body)
    if not _NO_PEER <= peer < MAX_RANKS or queue_pair >= 1 << 24 or family not in (0, 4, 6):
        raise MessageError("a connection that cannot be")
    if (family == 0) != (queue_pair != 0):
        raise MessageError("neither a queue pair nor a socket")
    socket = None
    if family:
        size = 4 if family == 4 else 16
        source, destination = source[:size], destination[:size]
        if family == 6 and source.startswith(_MAPPED):
            source, destination = source[12:], destination[12:]
        socket = FiveTuple(source, destination, TCP, sport, dport)
    known = None if peer == _NO_PEER else peer
    return Connection(header, known, bool(is_send), queue_pair, device, socket)


def _text(data: bytes) -> str:
    text = data.partition(b"\0")[0].decode("ascii", "replace")
    return "".join(letter if letter.isprintable() else "?" for letter in text)
