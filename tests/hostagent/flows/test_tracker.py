import socket

import pytest

from hostagent.flows.connection import TCP, Connection, FiveTuple
from hostagent.flows.tracker import LOOKUPS, Changes, FlowTracker


def packed(address):
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def connection(source="10.0.1.1", destination="10.0.2.1", *, port=5000, cookie=1, inode=100, sent=0):
    flow = FiveTuple(packed(source), packed(destination), TCP, port, 6000)
    return Connection(flow, cookie, inode, sent)


@pytest.fixture
def tracker():
    return FlowTracker([packed("10.0.1.1"), packed("10.0.1.2"), packed("fd00::1")])


def owned():
    return {100: "job1", 101: "job2"}


def test_a_flows_life(tracker):
    one = connection()
    assert tracker.update([one], owned, 7) == Changes(opened=[one.tuple])
    flow = tracker.flows[one.tuple]
    assert (flow.job, flow.opened_ns, flow.bytes_sent) == ("job1", 7, 0)
    assert tracker.update([one], owned, 8) == Changes()
    assert tracker.update([connection(sent=500)], owned, 9) == Changes(changed=[one.tuple])
    assert (flow.opened_ns, flow.bytes_sent) == (7, 500)
    # Closed by its process, with data still to send: no inode any more, but the same socket.
    assert tracker.update([connection(sent=900, inode=0)], owned, 10) == Changes(changed=[one.tuple])
    assert tracker.update([], owned, 11) == Changes(closed=[one.tuple])
    assert not tracker.flows


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("10.0.1.1", "127.0.0.5"),
        ("10.0.1.1", "10.0.1.2"),  # between two addresses of this host
        ("10.0.1.1", "10.0.1.1"),
        ("192.168.0.1", "10.0.2.1"),  # from an address that is not ours to speak for
        ("fd00::1", "::1"),
    ],
)
def test_what_does_not_leave_the_host_is_no_flow(tracker, source, destination):
    def never():
        raise AssertionError("nobody's owner is needed")

    assert tracker.update([connection(source, destination)], never, 1) == Changes()


def test_ipv6(tracker):
    six = connection("fd00::1", "fd00::2")
    assert tracker.update([six], owned, 1) == Changes(opened=[six.tuple])


def test_reused_five_tuple_is_another_flow(tracker):
    tracker.update([connection(sent=500)], owned, 1)
    assert tracker.update([connection(cookie=2, inode=101)], owned, 2) == Changes(opened=[connection().tuple])
    flow = tracker.flows[connection().tuple]
    assert (flow.job, flow.opened_ns, flow.bytes_sent) == ("job2", 2, 0)


def test_reused_five_tuple_of_a_stranger_closes_the_flow(tracker):
    tracker.update([connection()], owned, 1)
    assert tracker.update([connection(cookie=2, inode=999)], owned, 2) == Changes(closed=[connection().tuple])


def test_strangers_are_looked_up_a_few_times_only(tracker):
    calls = []

    def owners():
        calls.append(1)
        return {}

    for now in range(10):
        assert tracker.update([connection(inode=999)], owners, now) == Changes()
    assert len(calls) == LOOKUPS
    tracker.forget_strangers()
    assert tracker.update([connection(inode=999)], lambda: {999: "late"}, 11) == Changes(
        opened=[connection().tuple]
    )


def test_owner_found_late_or_looked_for_later(tracker):
    assert tracker.update([connection()], lambda: None, 1) == Changes()
    assert tracker.update([connection()], dict, 2) == Changes()
    assert tracker.update([connection()], owned, 3) == Changes(opened=[connection().tuple])


def test_not_accepted_yet(tracker):
    assert tracker.update([connection(inode=0)], owned, 1) == Changes()
    assert tracker.update([connection()], owned, 2) == Changes(opened=[connection().tuple])


def test_owners_are_asked_for_once_however_many_are_new(tracker):
    calls = []

    def owners():
        calls.append(1)
        return owned()

    changes = tracker.update([connection(port=port, cookie=port) for port in range(5000, 5050)], owners, 1)
    assert len(changes.opened) == 50
    assert len(calls) == 1
