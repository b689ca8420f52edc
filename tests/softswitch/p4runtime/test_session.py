"""What waits for a client, and what is dropped for a slow one."""

from finsy.proto import p4i, p4r, stratum
from google.protobuf.any_pb2 import Any
from grpc import StatusCode

from softswitch.p4runtime import roles
from softswitch.p4runtime.errors import P4Error
from softswitch.p4runtime.packetio import ControllerHeader
from softswitch.p4runtime.session import MAX_PENDING, Session

NO_HEADER = ControllerHeader(p4i.ControllerPacketMetadata())


def test_messages_come_in_order_and_end_with_close():
    session = Session()
    session.send(p4r.StreamMessageResponse(error=p4r.StreamError(message="1")))
    session.packet_in(b"2", NO_HEADER, roles.FULL)
    session.close()
    first, second = session.messages()
    assert first.error.message == "1"
    assert second.packet.payload == b"2"


def test_packets_beyond_the_limit_are_dropped_but_not_what_must_arrive():
    session = Session()
    for _ in range(MAX_PENDING + 3):
        session.packet_in(b"x", NO_HEADER, roles.FULL)
    session.notify(p4r.StreamMessageResponse())
    session.send(p4r.StreamMessageResponse(error=p4r.StreamError(message="last")))
    session.fail(P4Error(StatusCode.INVALID_ARGUMENT, "over"))
    messages = list(session.messages())
    assert len(messages) == MAX_PENDING + 1
    assert messages[-1].error.message == "last"
    assert session.dropped == 4
    assert session.error.message == "over"


def test_a_role_gets_only_the_packets_it_filters_for():
    metadata = p4i.ControllerPacketMetadata()
    metadata.metadata.add(id=1, name="port", bitwidth=8)
    header = ControllerHeader(metadata)
    config = stratum.P4RoleConfig(receives_packet_ins=True)
    config.packet_in_filter.metadata_id, config.packet_in_filter.value = 1, b"\x02"
    packed = Any()
    packed.Pack(config)
    role = roles.parse(packed)
    session = Session()
    session.packet_in(b"\x01a", header, role)
    session.packet_in(b"\x02b", header, role)
    session.close()
    assert [message.packet.payload for message in session.messages()] == [b"b"]
