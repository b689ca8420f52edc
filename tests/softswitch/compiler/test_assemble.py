import struct

import pytest

TRACE = struct.Struct("!BHBBIBB")
CLONE, RESUBMIT, MULTICAST, DIGEST, DROP, CLONE_AND_DROP, CLONE_BARE = range(1, 8)
E_CLONE, RECIRCULATE, TRUNCATE, E_DROP, E_DROP_AND_CLONE = range(1, 6)


def todo(ingress=0, egress=0, out=4, tag=0):
    return bytes([ingress, egress, out, tag]) + b"payload"


def traces(sent):
    """What egress saw of each copy: (port, instance type, rid, kept, lost, length, ingress port, rest)."""
    found = []
    for port, data in sent:
        instance, rid, kept, lost, length, egress_port, in_port = TRACE.unpack_from(data)
        assert egress_port == port
        found.append((port, instance, rid, kept, lost, length, in_port, data[TRACE.size :]))
    return found


@pytest.fixture
def switch(ours):
    return filled(ours("copies"))


def filled(switch):
    switch.pipeline.multicast.insert(1, [(5, 1), (6, 1), (5, 2)])
    switch.pipeline.clones.insert(5, [(8, 3)])
    return switch


def test_unicast_goes_to_its_port_and_queue(switch):
    ((port, queue, data),) = switch.send(todo(tag=3))
    assert (port, queue) == (4, 3)
    assert traces([(port, data)]) == [(4, 0, 0, 3, 7, 11, 1, b"\0\0\4\4payload")]


def test_a_priority_without_a_queue_is_dropped(ours, caplog):
    switch = ours("copies", queues=4)
    assert [queue for _, queue, _ in switch.send(todo(tag=3))] == [3]
    assert switch.send(todo(tag=4)) == []
    assert "priority 4 out of range" in caplog.text


def test_port_511_drops(switch):
    assert switch.ports(todo(ingress=DROP)) == []


def test_multicast_copies_carry_rid_and_instance_type(switch):
    sent = traces(switch.ports(todo(MULTICAST)))
    assert sent == [(p, 5, rid, 0, 7, 11, 1, b"\3\0\4\1payload") for p, rid in [(5, 1), (6, 1), (5, 2)]]


def test_a_multicast_group_without_members_sends_nothing(switch):
    switch.pipeline.multicast.delete(1)
    assert switch.ports(todo(MULTICAST)) == []


def test_an_ingress_clone_is_the_packet_as_it_came_with_the_field_list_only(switch):
    clone, original = traces(switch.ports(todo(CLONE, tag=9)))
    assert clone == (8, 1, 3, 9, 0, 11, 0, b"\1\0\4\x09payload")
    assert original == (4, 0, 0, 9, 7, 11, 1, b"\1\0\4\x0apayload")


def test_a_clone_survives_the_drop_of_its_original(switch):
    assert [t[:2] for t in traces(switch.ports(todo(CLONE_AND_DROP)))] == [(8, 1)]


def test_a_clone_without_a_session_is_none(switch):
    switch.pipeline.clones.delete(5)
    assert [t[:2] for t in traces(switch.ports(todo(CLONE)))] == [(4, 0)]


def test_a_clone_session_may_cut_the_packet_and_choose_the_queue(switch):
    switch.pipeline.clones.modify(5, [(8, 3)], class_of_service=6, length=12)
    (port, queue, data), _ = switch.send(todo(CLONE))
    assert (port, queue, len(data)) == (8, 6, 12)


def test_an_egress_clone_goes_through_egress_after_the_original(switch):
    original, clone = traces(switch.ports(todo(0, E_CLONE, tag=9)))
    assert original == (4, 0, 0, 9, 7, 11, 1, b"\0\1\4\x0apayload")
    assert clone == (8, 2, 3, 9, 0, 11 + TRACE.size, 0, b"\0\1\4\x0apayload")


def test_an_egress_clone_survives_the_drop_of_its_original(switch):
    assert [t[:2] for t in traces(switch.ports(todo(0, E_DROP_AND_CLONE)))] == [(8, 2)]
    assert switch.ports(todo(0, E_DROP)) == []


def test_resubmit_starts_again_with_the_original_packet_and_the_kept_fields(switch):
    (trace,) = traces(switch.ports(todo(RESUBMIT, tag=20)))
    assert trace == (4, 0, 0, 22, 7, 11, 0, b"\2\0\4\x15payload")


def test_recirculate_starts_again_with_the_packet_as_it_left(switch):
    (trace,) = traces(switch.ports(todo(0, RECIRCULATE, tag=20)))
    assert trace == (4, 0, 0, 24, 7, 11, 0, b"\0\2\4\x17payload")


def test_truncate_cuts_the_packet(switch):
    ((_, data),) = switch.ports(todo(0, TRUNCATE))
    assert len(data) == 14


def test_a_digest_carries_the_fields_as_they_are_after_ingress(switch):
    switch.send(todo(DIGEST, tag=41), port=7)
    assert switch.digests == [("report_t", (42, 7))]
    assert [width for _, width in switch.pipeline.digests["report_t"].fields] == [8, 9]


def test_copies_that_go_round_for_ever_are_dropped_in_the_end(switch, caplog):
    switch.pipeline.clones.modify(5, [(8, 0)])
    assert len(switch.ports(todo(CLONE_BARE, RECIRCULATE))) < 1024
    assert "went through the pipeline 1024 times" in caplog.text
    assert [t[0] for t in traces(switch.ports(todo()))] == [4]


def test_every_copy_is_as_bmv2_makes_it(both):
    switch, bmv2 = both("copies")
    filled(switch)
    bmv2.replicate(1, [(5, 1), (6, 1), (5, 2)])
    bmv2.clone(5, [(8, 3)])
    for ingress in range(8):
        for egress in range(6):
            if (ingress, egress) == (CLONE_BARE, RECIRCULATE):
                continue  # goes round for ever
            packet = todo(ingress, egress, tag=17)
            expected = switch.ports(packet)
            assert sorted(bmv2.ports(packet, 1, len(expected))) == sorted(expected), (ingress, egress)
