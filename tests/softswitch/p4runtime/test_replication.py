"""Multicast groups, clone sessions, and digests' configs."""

import pytest
from finsy.proto import p4r

from tests.softswitch.p4runtime.helpers import CPU_PORT, RpcFailedError, delete, insert, modify

INVALID, NOT_FOUND, EXISTS, UNIMPLEMENTED = 3, 5, 6, 12


def multicast(number, *replicas, **fields):
    group = p4r.MulticastGroupEntry(multicast_group_id=number, **fields)
    for port, instance in replicas:
        group.replicas.add(port=port, instance=instance)
    return p4r.PacketReplicationEngineEntry(multicast_group_entry=group)


def clone(number, *replicas, **fields):
    session = p4r.CloneSessionEntry(session_id=number, **fields)
    for port, instance in replicas:
        session.replicas.add(port=port, instance=instance)
    return p4r.PacketReplicationEngineEntry(clone_session_entry=session)


def code(client, update):
    with pytest.raises(RpcFailedError) as caught:
        client.write(update)
    return caught.value.codes[0]


def pre(kind, entry):
    return kind(packet_replication_engine_entry=entry)


@pytest.mark.parametrize("make", [multicast, clone])
def test_insert_modify_delete(client, make):
    first, second = make(1, (b"\x01", 0), (b"\x02", 5)), make(2, (b"\x03", 1))
    everything = p4r.Entity(packet_replication_engine_entry=make(0))
    client.write(pre(insert, first), pre(insert, second))
    assert client.read(everything) == [first, second]
    assert client.read(p4r.Entity(packet_replication_engine_entry=make(2))) == [second]
    assert code(client, pre(insert, first)) == EXISTS
    changed = make(1, (b"\x04", 0))
    client.write(pre(modify, changed))
    assert client.read(everything) == [changed, second]
    client.write(pre(delete, make(1)))
    assert client.read(everything) == [second]
    assert code(client, pre(delete, make(1))) == NOT_FOUND
    assert code(client, pre(modify, make(1))) == NOT_FOUND
    assert code(client, pre(insert, make(0))) == INVALID
    assert code(client, pre(insert, make(3, (b"\x01", 1), (b"\x01", 1)))) == INVALID
    assert code(client, pre(insert, make(3, (b"\x02\x00", 1)))) == INVALID
    backup = make(3, (b"\x01", 1))
    kind = backup.WhichOneof("type")
    getattr(backup, kind).replicas[0].backup_replicas.add(port=b"\x02")
    assert code(client, pre(insert, backup)) == UNIMPLEMENTED


def test_copies_leave(client, names, service):
    _, dataplane, device = service
    client.write(
        pre(insert, multicast(4, (b"\x01", 1), (b"\x02", 1), metadata=b"m")),
        pre(insert, clone(7, (b"\xff\xff\xff\xfd", 0), class_of_service=3, packet_length_bytes=20)),
        insert(table_entry=names.entry("mac", "flood", args={"group": 4}, match={"dst": 1})),
        insert(
            table_entry=names.entry(
                "acl", "mirror", args={"session": 7}, match={"ingress_port": 3}, priority=1
            )
        ),
    )
    assert (
        client.read(p4r.Entity(packet_replication_engine_entry=multicast(0)))[
            0
        ].multicast_group_entry.metadata
        == b"m"
    )
    sent = []
    device.running.pipeline.transmit = lambda port, queue, packet: sent.append((port, queue, len(packet)))
    dataplane._process([bytes(5) + b"\1" + bytes(6) + b"\x08\x00\x45" + bytes(45)], 3)
    assert sorted(sent) == [(1, 0, 60), (2, 0, 60), (CPU_PORT, 3, 20)]


def test_a_clone_sessions_queue_and_length(client):
    assert code(client, pre(insert, clone(1, class_of_service=8))) == INVALID
    assert code(client, pre(insert, clone(1, packet_length_bytes=-1))) == INVALID


def test_an_empty_replication_entry(client):
    assert code(client, pre(insert, p4r.PacketReplicationEngineEntry())) == INVALID


def test_digests_are_switched_on_and_off(client, names):
    digest = p4r.DigestEntry(digest_id=names.id["learn_t"], config=p4r.DigestEntry.Config(max_list_size=3))
    everything = p4r.Entity(digest_entry=p4r.DigestEntry())
    assert code(client, modify(digest_entry=digest)) == NOT_FOUND
    client.write(insert(digest_entry=digest))
    assert code(client, insert(digest_entry=digest)) == EXISTS
    digest.config.max_list_size = 4
    client.write(modify(digest_entry=digest))
    assert client.read(everything) == [digest]
    digest.config.max_list_size = -4
    assert code(client, modify(digest_entry=digest)) == INVALID
    client.write(delete(digest_entry=digest))
    assert client.read(everything) == []
    assert code(client, insert(digest_entry=p4r.DigestEntry(digest_id=1))) == INVALID
