import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.flows.connection import TCP, FiveTuple
from hostagent.nccl.messages import (
    Collectives,
    Communicator,
    Connection,
    End,
    Header,
    MessageError,
    parse,
)

MAGIC = 0x314E564C


def datagram(kind, body=b"", magic=MAGIC, rank=1):
    return struct.pack("=IIQQII", magic, kind, 77, 1000, rank, 5) + body


def communicator(ranks=8, nodes=2, name=b"world"):
    return struct.pack("=II64s", ranks, nodes, name)


def connection(peer=3, send=1, qp=0, device=0, family=4, source=b"\x0a\0\0\1", destination=b"\x0a\0\0\2"):
    return struct.pack("=iIIiIHH16s16s", peer, send, qp, device, family, 4000, 5000, source, destination)


HEADER = Header(77, 1, 1000, 5)


def test_each_kind():
    assert parse(datagram(1, communicator())) == Communicator(HEADER, "world", 8, 2)
    key = FiveTuple(b"\x0a\0\0\1", b"\x0a\0\0\2", TCP, 4000, 5000)
    assert parse(datagram(2, connection())) == Connection(HEADER, 3, True, 0, 0, key)
    pair = connection(peer=-1, send=0, qp=9, device=4, family=0)
    assert parse(datagram(2, pair)) == Connection(HEADER, None, False, 9, 4, None)
    collectives = struct.pack("=QQQQ16s", 9, 4, 4096, 900, b"AllReduce")
    assert parse(datagram(3, collectives)) == Collectives(HEADER, 9, 4, 4096, 900, "AllReduce")
    assert parse(datagram(4)) == End(HEADER)


def test_ipv4_through_an_ipv6_socket_is_ipv4():
    mapped = bytes(10) + b"\xff\xff"
    body = connection(family=6, source=mapped + b"\x0a\0\0\1", destination=mapped + b"\x0a\0\0\2")
    assert parse(datagram(2, body)).socket == FiveTuple(b"\x0a\0\0\1", b"\x0a\0\0\2", TCP, 4000, 5000)
    six = connection(family=6, source=b"\xfd" + bytes(15), destination=b"\xfe" + bytes(15))
    assert parse(datagram(2, six)).socket.source == b"\xfd" + bytes(15)


def test_names_are_made_printable():
    assert parse(datagram(1, communicator(name=b"a\x1b[31m\xff\nb"))).name == "a?[31m\ufffd?b"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "too short"),
        (datagram(4)[:-1], "too short"),
        (datagram(4, magic=MAGIC + 1), "not the plugin's"),
        (datagram(9), "unknown"),
        (datagram(4, b"x"), "unknown"),
        (datagram(1, communicator() + b"x"), "unknown"),
        (datagram(1, communicator(ranks=1)), "cannot be"),  # rank 1 of 1
        (datagram(1, communicator(nodes=0)), "cannot be"),
        (datagram(1, communicator(ranks=10**7)), "cannot be"),
        (datagram(4, rank=10**6), "a rank"),
        (datagram(2, connection(peer=-2)), "cannot be"),
        (datagram(2, connection(family=5)), "cannot be"),
        (datagram(2, connection(family=0, qp=1 << 24)), "cannot be"),
        (datagram(2, connection(family=0, qp=0)), "neither"),
        (datagram(2, connection(family=4, qp=7)), "neither"),
    ],
)
def test_what_the_plugin_cannot_have_sent(data, reason):
    with pytest.raises(MessageError, match=reason):
        parse(data)


def only_refusals(data):
    try:
        message = parse(data)
    except MessageError:
        return
    assert 0 <= message.header.rank < 10**6


@given(st.binary(max_size=300))
def test_any_bytes(data):
    only_refusals(data)


@given(st.integers(0, 6), st.integers(0, 2**32 - 1), st.binary(max_size=120))
def test_any_body(kind, rank, body):
    only_refusals(datagram(kind, body, rank=rank))
    for size in (0, 72, 56, 48):
        only_refusals(datagram(kind, body[:size].ljust(size, b"\x01"), rank=rank))
