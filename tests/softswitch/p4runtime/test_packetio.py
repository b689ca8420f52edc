"""Controller headers: fields packed as the P4 header lays them out."""

import pytest
from finsy.proto import p4i, p4r
from grpc import StatusCode

from softswitch.p4runtime.errors import P4Error
from softswitch.p4runtime.packetio import ControllerHeader, stream_error


def header(*fields):
    metadata = p4i.ControllerPacketMetadata()
    metadata.preamble.name = "packet_out"
    for number, (name, width, *annotations) in enumerate(fields, 1):
        metadata.metadata.add(id=number, name=name, bitwidth=width, annotations=annotations)
    return ControllerHeader(metadata)


HEADER = header(("port", 9), ("reason", 3), ("pad", 4, "@padding"))


def metadata(**values):
    return [p4r.PacketMetadata(metadata_id=int(name[1:]), value=value) for name, value in values.items()]


def test_unpacks_fields_in_order_highest_bits_first():
    message = HEADER.unpack(bytes([0b1111_1111, 0b0_101_0000]) + b"payload")
    assert message.payload == b"payload"
    assert [(item.metadata_id, item.value) for item in message.metadata] == [
        (1, b"\x01\xfe"),
        (2, b"\x05"),
        (3, b"\x00"),
    ]


def test_packs_what_it_unpacks():
    packet = bytes([0b0000_0001, 0b1_010_0000])
    assert HEADER.pack(HEADER.unpack(packet).metadata) == packet


def test_padding_may_be_left_out():
    assert HEADER.pack(metadata(_1=b"\x03", _2=b"\x01")) == bytes([0b0000_0001, 0b1_001_0000])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"_1": b"\x01"}, "reason"),
        ({"_1": b"\x01", "_2": b"\x08"}, "does not fit into 3 bits"),
        ({"_1": b"\x01", "_2": b"\x01", "_9": b"\x01"}, "id 9"),
    ],
)
def test_refuses_metadata_that_do_not_fit_the_header(fields, message):
    with pytest.raises(P4Error, match=message) as caught:
        HEADER.pack(metadata(**fields))
    assert caught.value.code is StatusCode.INVALID_ARGUMENT


def test_a_program_without_header_has_no_bytes_of_it():
    none = ControllerHeader(p4i.ControllerPacketMetadata())
    assert none.size == 0
    assert none.pack([]) == b""
    assert none.unpack(b"all of it") == p4r.PacketIn(payload=b"all of it")


def test_the_error_carries_the_packet():
    packet = p4r.PacketOut(payload=b"x")
    error = stream_error(P4Error(StatusCode.INVALID_ARGUMENT, "no"), packet).error
    assert (error.canonical_code, error.message, error.packet_out.packet_out) == (3, "no", packet)
