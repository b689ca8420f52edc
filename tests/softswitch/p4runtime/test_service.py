"""The service over real gRPC: streams, pipeline configs, batches, packet I/O, digests, idle timeouts."""

import time

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc, stratum
from grpc import StatusCode

from softswitch.p4runtime.service import API_VERSION
from tests.softswitch.p4runtime.helpers import (
    CPU_PORT,
    DEVICE_ID,
    Client,
    RpcFailedError,
    Stream,
    delete,
    insert,
    modify,
)

SET = p4r.SetForwardingPipelineConfigRequest
GET = p4r.GetForwardingPipelineConfigRequest
DST, SRC = 0x020000000002, 0x020000000001
FRAME = DST.to_bytes(6, "big") + SRC.to_bytes(6, "big") + b"\x12\x34payload"


def packet_out(payload, port, pad=b"\0"):
    packet = p4r.PacketOut(payload=payload)
    packet.metadata.add(metadata_id=1, value=port.to_bytes(2, "big"))
    packet.metadata.add(metadata_id=2, value=pad)
    return packet


def receive(dataplane, port=1, frame=FRAME):
    """Let the program process ``frame`` as if it had come in on ``port``."""
    dataplane._process([frame], port)


def strange(program):
    """Return a program that uses an extern which no v1model switch has."""
    return program.replace(b'"mark_to_drop"', b'"teleport"')


# Streams


def test_two_clients_and_the_end_of_the_primary(stub, stream):
    backup = Stream(stub)
    backup.arbitrate(0)
    assert backup.next().status.code == StatusCode.ALREADY_EXISTS.value[0]
    stream.close()
    assert backup.next().status.code == StatusCode.NOT_FOUND.value[0]
    backup.arbitrate(1)
    assert backup.next().status.code == 0
    backup.close()


def test_a_stream_ends_with_the_error_of_its_arbitration(stub, stream):
    for election_id, device_id, code in (
        (1, DEVICE_ID, StatusCode.INVALID_ARGUMENT),
        (2, DEVICE_ID + 1, StatusCode.NOT_FOUND),
    ):
        other = Stream(stub)
        other.arbitrate(election_id, device_id)
        with pytest.raises(RpcFailedError) as caught:
            other.next()
        assert caught.value.code is code


def test_a_client_that_vanishes_is_no_longer_primary(service, stub):
    with grpc.insecure_channel(service[0]) as channel:
        gone = Stream(p4r_grpc.P4RuntimeStub(channel))
        gone.arbitrate(9)
        assert gone.next().status.code == 0
    stays = Stream(stub)
    stays.arbitrate(9)
    assert stays.next().status.code == 0
    stays.close()


def test_capabilities(stub):
    assert stub.Capabilities(p4r.CapabilitiesRequest()).p4runtime_api_version == API_VERSION == "1.5.0"
    assert stub.Capabilities(p4r.CapabilitiesRequest(device_id=DEVICE_ID)).p4runtime_api_version == "1.5.0"
    with pytest.raises(grpc.RpcError) as caught:
        stub.Capabilities(p4r.CapabilitiesRequest(device_id=99))
    assert caught.value.code() is StatusCode.NOT_FOUND


# Pipeline configs


def test_without_a_program(stub, stream):
    primary = Client(stub)
    assert not primary.get().HasField("config")
    for call in (lambda: primary.write(), lambda: primary.read(p4r.Entity(table_entry=p4r.TableEntry()))):
        with pytest.raises(RpcFailedError, match="No forwarding pipeline config") as caught:
            call()
        assert caught.value.code is StatusCode.FAILED_PRECONDITION
    with pytest.raises(RpcFailedError) as caught:
        primary.push(SET.COMMIT)
    assert caught.value.code is StatusCode.NOT_FOUND


def test_get_returns_what_was_set_by_parts(stub, stream, features):
    features = p4r.ForwardingPipelineConfig.FromString(features.SerializeToString())
    features.cookie.cookie = 0xC00C1E
    primary = Client(stub)
    primary.push(SET.VERIFY_AND_COMMIT, features)
    assert primary.get().config == features
    assert primary.get(GET.COOKIE_ONLY).config == p4r.ForwardingPipelineConfig(cookie=features.cookie)
    only_info = primary.get(GET.P4INFO_AND_COOKIE).config
    assert only_info.p4info == features.p4info
    assert not only_info.p4_device_config
    only_program = primary.get(GET.DEVICE_CONFIG_AND_COOKIE).config
    assert only_program.p4_device_config == features.p4_device_config
    assert not only_program.HasField("p4info")


def test_only_the_primary_pushes(stub, stream, features):
    with pytest.raises(RpcFailedError) as caught:
        Client(stub, election_id=7).push(SET.VERIFY, features)
    assert caught.value.code is StatusCode.PERMISSION_DENIED


def test_verify_changes_nothing(stub, stream, features):
    primary = Client(stub)
    primary.push(SET.VERIFY, features)
    assert not primary.get().HasField("config")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.ClearField("p4_device_config"), "p4_device_config"),
        (lambda c: setattr(c, "p4_device_config", b"not json"), "not a program"),
        (lambda c: setattr(c, "p4_device_config", b"[" * 100_000), "not a program"),
        (lambda c: setattr(c, "p4_device_config", b"{}"), "not a program"),
        (lambda c: setattr(c, "p4_device_config", strange(c.p4_device_config)), "teleport"),
        (lambda c: setattr(c.p4info.tables[0].match_fields[0], "bitwidth", 7), "ingress.mac"),
        (lambda c: setattr(c.p4info.counters[0].preamble, "name", "other"), "counter other"),
    ],
)
def test_a_config_that_does_not_fit_is_refused_and_changes_nothing(client, features, change, message):
    broken = p4r.ForwardingPipelineConfig.FromString(features.SerializeToString())
    broken.cookie.cookie = 1
    change(broken)
    for action in (SET.VERIFY, SET.VERIFY_AND_SAVE, SET.VERIFY_AND_COMMIT, SET.RECONCILE_AND_COMMIT):
        with pytest.raises(RpcFailedError, match=message) as caught:
            client.push(action, broken)
        assert caught.value.code is StatusCode.INVALID_ARGUMENT
    assert client.get().config == features


def test_an_action_is_needed_and_commit_takes_no_config(client, features):
    for action, config in ((SET.UNSPECIFIED, features), (SET.COMMIT, features), (SET.VERIFY, None)):
        with pytest.raises(RpcFailedError) as caught:
            client.push(action, config)
        assert caught.value.code is StatusCode.INVALID_ARGUMENT


def test_commit_clears_the_state(client, features, names):
    client.write(insert(table_entry=names.entry("mac", "forward", args={"port": 1}, match={"dst": DST})))
    client.push(SET.VERIFY_AND_COMMIT, features)
    assert client.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=names.id["mac"]))) == []


def test_a_saved_program_takes_writes_and_runs_after_commit(client, features, names, service, stream):
    entry = names.entry("mac", "punt", args={"reason": 2}, match={"dst": DST})
    client.push(SET.VERIFY_AND_SAVE, features)
    client.write(insert(table_entry=entry))
    receive(service[1])  # the old program still runs, and drops
    client.push(SET.COMMIT)
    receive(service[1], port=2)
    packet = stream.next("packet")
    assert packet.metadata[0].value == b"\x02"
    assert client.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=names.id["mac"]))) == [entry]


def test_reconcile_keeps_state_that_the_new_program_has(client, features, names, service, stream):
    entry = names.entry("mac", "punt", args={"reason": 5}, match={"dst": DST}, metadata=b"m")
    client.write(
        insert(table_entry=entry),
        insert(digest_entry=p4r.DigestEntry(digest_id=names.id["learn_t"])),
        modify(table_entry=names.entry("source", "learn", is_default_action=True)),
        insert(
            action_profile_member=p4r.ActionProfileMember(
                action_profile_id=names.id["spreader"], member_id=1, action=names.action("forward", port=1)
            )
        ),
        modify(
            register_entry=p4r.RegisterEntry(
                register_id=names.id["port_register"], index=p4r.Index(index=3), data={"bitstring": b"\x07"}
            )
        ),
    )
    receive(service[1])
    stream.next("packet")
    changed = p4r.ForwardingPipelineConfig.FromString(features.SerializeToString())
    changed.cookie.cookie = 2
    client.push(SET.RECONCILE_AND_COMMIT, changed)
    assert client.get(GET.COOKIE_ONLY).config.cookie.cookie == 2
    read = client.read(
        p4r.Entity(table_entry=p4r.TableEntry(table_id=names.id["mac"], counter_data=p4r.CounterData()))
    )[0]
    assert (read.counter_data.packet_count, read.metadata) == (1, b"m")
    assert len(client.read(p4r.Entity(action_profile_member=p4r.ActionProfileMember()))) == 1
    assert len(client.read(p4r.Entity(digest_entry=p4r.DigestEntry()))) == 1
    register = p4r.RegisterEntry(register_id=names.id["port_register"], index=p4r.Index(index=3))
    assert client.read(p4r.Entity(register_entry=register))[0].data.bitstring == b"\x07"
    source = p4r.TableEntry(table_id=names.id["source"], is_default_action=True)
    assert client.read(p4r.Entity(table_entry=source))[0].action.action.action_id == names.id["learn"]
    receive(service[1])
    assert stream.next("packet").metadata[1].value == b"\x05"


# Batches


def test_every_update_of_a_batch_is_tried_and_answered_in_order(client, names):
    good = names.entry("mac", "forward", args={"port": 1}, match={"dst": DST})
    with pytest.raises(RpcFailedError) as caught:
        client.write(
            insert(table_entry=good),
            insert(table_entry=good),
            delete(table_entry=names.entry("mac", match={"dst": 9})),
            insert(table_entry=p4r.TableEntry(table_id=0x2FFFFFF)),
            p4r.Update(entity=p4r.Entity(table_entry=good)),
            insert(table_entry=names.entry("mac", "forward", args={"port": 1}, match={"dst": 9})),
        )
    assert caught.value.code is StatusCode.UNKNOWN
    assert [StatusCode.OK.value[0], *caught.value.codes[1:]] == caught.value.codes
    assert caught.value.codes == [0, 6, 5, 3, 3, 0]
    assert "ingress.mac" in caught.value.errors[1].message
    assert len(client.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=names.id["mac"])))) == 2


def test_other_atomicities_are_not_implemented(client):
    for atomicity in (p4r.WriteRequest.ROLLBACK_ON_ERROR, p4r.WriteRequest.DATAPLANE_ATOMIC):
        with pytest.raises(RpcFailedError) as caught:
            client.write(atomicity=atomicity)
        assert caught.value.code is StatusCode.UNIMPLEMENTED


def test_writes_by_a_backup_are_denied(client, stub, names):
    with pytest.raises(RpcFailedError) as caught:
        Client(stub, election_id=0).write()
    assert caught.value.code is StatusCode.PERMISSION_DENIED


def test_a_read_serves_the_requests_that_are_valid(client, names):
    with pytest.raises(RpcFailedError) as caught:
        client.read(
            p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=names.id["port_counter"])),
            p4r.Entity(),
            p4r.Entity(extern_entry=p4r.ExternEntry()),
        )
    assert len(caught.value.found) == 16
    assert caught.value.codes == [0, StatusCode.INVALID_ARGUMENT.value[0], StatusCode.UNIMPLEMENTED.value[0]]


def test_a_long_read_comes_in_several_messages(client, stub, names):
    for _ in range(40):
        request = p4r.ReadRequest(device_id=DEVICE_ID)
        request.entities.extend([p4r.Entity(counter_entry=p4r.CounterEntry())] * 40)
    messages = list(stub.Read(request))
    assert len(messages) == 40
    assert sum(len(message.entities) for message in messages) == 40 * 16


def test_a_role_writes_reads_and_receives_what_is_its_own(client, stub, names, service, stream):
    config = stratum.P4RoleConfig(exclusive_p4_ids=[names.id["mac"]], receives_packet_ins=False)
    role = p4r.Role(name="mac")
    role.config.Pack(config)
    limited_stream = Stream(stub)
    limited_stream.arbitrate(1, role=role)
    assert limited_stream.next().status.code == 0
    limited = Client(stub, role="mac")
    limited.write(insert(table_entry=names.entry("mac", "punt", args={"reason": 1}, match={"dst": DST})))
    with pytest.raises(RpcFailedError) as caught:
        limited.write(modify(table_entry=names.entry("source", "learn", is_default_action=True)))
    assert caught.value.codes == [StatusCode.PERMISSION_DENIED.value[0]]
    with pytest.raises(RpcFailedError) as caught:
        limited.push(SET.COMMIT)
    assert caught.value.code is StatusCode.PERMISSION_DENIED
    client.write(insert(table_entry=names.entry("source", "learn", match={"src": SRC})))
    everything = p4r.Entity(table_entry=p4r.TableEntry())
    assert {entry.table_id for entry in limited.read(everything, role="mac")} == {names.id["mac"]}
    receive(service[1])
    assert stream.next("packet").payload == FRAME
    limited_stream.send(packet=p4r.PacketOut())
    assert limited_stream.next().WhichOneof("details") == "packet_out"  # no packet-in before it
    limited_stream.close()


# Packet I/O


def test_a_packet_in_has_the_header_as_metadata(client, names, service, stream):
    client.write(insert(table_entry=names.entry("mac", "punt", args={"reason": 5}, match={"dst": DST})))
    receive(service[1], port=258)
    packet = stream.next("packet")
    assert packet.payload == FRAME
    assert [(item.metadata_id, item.value) for item in packet.metadata] == [
        (1, b"\x01\x02"),
        (2, b"\x05"),
        (3, b"\x00"),
    ]


def test_a_packet_out_goes_through_the_program(client, stream):
    stream.send(packet=packet_out(FRAME, CPU_PORT))  # the program sends it where it says: back to us
    packet = stream.next("packet")
    # The program adds no header of its own on this way, so the frame's first bytes are taken for it.
    assert packet.payload == FRAME[2:]


@pytest.mark.parametrize(
    "packet",
    [
        p4r.PacketOut(payload=b"x"),
        p4r.PacketOut(payload=b"x", metadata=[p4r.PacketMetadata(metadata_id=9, value=b"\1")]),
        packet_out(b"x", 512),
        packet_out(b"x", 1, pad=b""),
    ],
)
def test_a_packet_out_with_wrong_metadata_is_reported(client, stream, packet):
    stream.send(packet=packet)
    error = stream.next("error")
    assert error.canonical_code == StatusCode.INVALID_ARGUMENT.value[0]
    assert error.packet_out.packet_out == packet


def test_a_backup_sends_and_receives_nothing(client, stub, names, service, stream):
    backup = Stream(stub)
    backup.arbitrate(0)
    backup.next()
    client.write(insert(table_entry=names.entry("mac", "punt", args={"reason": 1}, match={"dst": DST})))
    receive(service[1])
    stream.next("packet")
    backup.send(packet=packet_out(FRAME, 1))
    error = backup.next()
    assert error.canonical_code == StatusCode.PERMISSION_DENIED.value[0]
    backup.close()


def test_other_stream_messages_are_reported(client, stream):
    message = p4r.StreamMessageRequest()
    message.other.Pack(p4r.Index())
    stream.send(other=message.other)
    assert stream.next("error").canonical_code == StatusCode.UNIMPLEMENTED.value[0]


# Digests and idle timeouts


def test_digests_are_listed_and_acknowledged(client, names, service, stream):
    config = p4r.DigestEntry.Config(max_timeout_ns=50_000_000, max_list_size=2, ack_timeout_ns=10**12)
    digest = p4r.DigestEntry(digest_id=names.id["learn_t"], config=config)
    client.write(
        insert(digest_entry=digest),
        modify(table_entry=names.entry("source", "learn", is_default_action=True)),
    )
    receive(service[1], port=4)
    receive(service[1], port=4)  # a duplicate
    learnt = stream.next("digest")  # after its timeout
    assert learnt.digest_id == names.id["learn_t"]
    assert [[m.bitstring for m in item.struct.members] for item in learnt.data] == [
        [SRC.to_bytes(6, "big")[0:], b"\x04"]
    ]
    receive(service[1], port=4)
    receive(service[1], port=5)
    receive(service[1], port=6)  # fills the list
    second = stream.next("digest")
    assert [item.struct.members[1].bitstring for item in second.data] == [b"\x05", b"\x06"]
    stream.send(digest_ack=p4r.DigestListAck(digest_id=learnt.digest_id, list_id=learnt.list_id))
    stream.send(digest_ack=p4r.DigestListAck(digest_id=99, list_id=1))
    assert stream.next("error").WhichOneof("details") == "digest_list_ack"
    receive(service[1], port=4)
    assert stream.next("digest").data == learnt.data


def test_an_entry_nobody_hits_is_reported_once_per_timeout(client, names, service, stream):
    entry = names.entry(
        "mac", "forward", args={"port": 1}, match={"dst": DST}, idle_timeout_ns=300_000_000, metadata=b"me"
    )
    client.write(insert(table_entry=entry))
    start = time.monotonic()
    first = stream.next("idle_timeout_notification")
    assert 0.3 <= time.monotonic() - start < 3
    expected = p4r.TableEntry()
    expected.CopyFrom(entry)
    expected.ClearField("action")
    assert list(first.table_entry) == [expected]
    again = stream.next("idle_timeout_notification")
    assert list(again.table_entry) == [expected]
    assert again.timestamp - first.timestamp >= 250_000_000
