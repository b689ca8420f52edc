import socket

import pytest

from hostagent.flows import tracker as module
from hostagent.flows.connection import TCP, Connection, FiveTuple, Listing
from hostagent.flows.flow import FlowKind
from hostagent.flows.kind import MIN_BYTES
from hostagent.flows.tracker import KIND_NS, LOOKUPS, Brief, Changes, FlowTracker, Sent


def packed(address):
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def connection(source="10.0.1.1", destination="10.0.2.1", *, port=5000, cookie=1, inode=100, sent=0):
    flow = FiveTuple(packed(source), packed(destination), TCP, port, 6000)
    return Connection(flow, cookie, inode, sent)


def update(tracker, connections, owners, now):
    """Take in a listing of ``connections``, as if all had new figures."""
    cookies = {connection.cookie for connection in connections}
    return tracker.update(Listing(connections, [*(cookies & tracker.known.keys())]), owners, now)


@pytest.fixture
def tracker():
    return FlowTracker([packed("10.0.1.1"), packed("10.0.1.2"), packed("fd00::1")])


def owned():
    return {100: "job1", 101: "job2"}


def test_a_flows_life(tracker):
    one = connection()
    assert update(tracker, [one], owned, 7) == Changes(opened=[one.tuple])
    flow = tracker.flows[one.tuple]
    assert (flow.job, flow.opened_ns, flow.bytes_sent) == ("job1", 7, 0)
    assert update(tracker, [one], owned, 8) == Changes()
    assert update(tracker, [connection(sent=500)], owned, 9) == Changes(changed=[one.tuple])
    assert (flow.opened_ns, flow.bytes_sent) == (7, 500)
    # Closed by its process, with data still to send: no inode any more, but the same socket.
    assert update(tracker, [connection(sent=900, inode=0)], owned, 10) == Changes(changed=[one.tuple])
    assert update(tracker, [], owned, 11) == Changes(closed=[one.tuple])
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

    assert update(tracker, [connection(source, destination)], never, 1) == Changes()


def test_ipv6(tracker):
    six = connection("fd00::1", "fd00::2")
    assert update(tracker, [six], owned, 1) == Changes(opened=[six.tuple])


def test_reused_five_tuple_is_another_flow(tracker):
    update(tracker, [connection(sent=500)], owned, 1)
    assert update(tracker, [connection(cookie=2, inode=101)], owned, 2) == Changes(
        opened=[connection().tuple]
    )
    flow = tracker.flows[connection().tuple]
    assert (flow.job, flow.opened_ns, flow.bytes_sent) == ("job2", 2, 0)


def test_reused_five_tuple_of_a_stranger_closes_the_flow(tracker):
    update(tracker, [connection()], owned, 1)
    assert update(tracker, [connection(cookie=2, inode=999)], owned, 2) == Changes(
        closed=[connection().tuple]
    )


def test_strangers_are_looked_up_a_few_times_only(tracker):
    calls = []

    def owners():
        calls.append(1)
        return {}

    for now in range(10):
        assert update(tracker, [connection(inode=999)], owners, now) == Changes()
    assert len(calls) == LOOKUPS
    tracker.forget_strangers()
    assert update(tracker, [connection(inode=999)], lambda: {999: "late"}, 11) == Changes(
        opened=[connection().tuple]
    )


def test_owner_found_late_or_looked_for_later(tracker):
    assert update(tracker, [connection()], lambda: None, 1) == Changes()
    assert update(tracker, [connection()], dict, 2) == Changes()
    assert update(tracker, [connection()], owned, 3) == Changes(opened=[connection().tuple])


def test_not_accepted_yet(tracker):
    assert update(tracker, [connection(inode=0)], owned, 1) == Changes()
    assert update(tracker, [connection()], owned, 2) == Changes(opened=[connection().tuple])


def test_owners_are_asked_for_once_however_many_are_new(tracker):
    calls = []

    def owners():
        calls.append(1)
        return owned()

    changes = update(tracker, [connection(port=port, cookie=port) for port in range(5000, 5050)], owners, 1)
    assert len(changes.opened) == 50
    assert len(calls) == 1


def test_what_is_no_flow_need_not_be_listed_again(tracker):
    local, stranger = connection("127.0.0.1", "127.0.0.1", cookie=7), connection(inode=999, cookie=8)
    for now in range(LOOKUPS):
        update(tracker, [local, stranger, connection(port=5001, cookie=9)], owned, now)
    assert set(tracker.ignored) == {7, 8}
    tracker.forget_strangers()
    assert set(tracker.ignored) == set()


def test_what_is_remembered_of_strangers_is_bounded(tracker, monkeypatch):
    monkeypatch.setattr(module, "MAX_IGNORED", 10)
    for cookie in range(100):
        update(tracker, [connection("127.0.0.1", "127.0.0.1", port=cookie, cookie=cookie)], owned, cookie)
        assert len(tracker.ignored) <= 11


def test_kinds_follow_the_volume(tracker):
    ring, store = connection(port=1, cookie=1), connection(port=2, cookie=2)
    update(tracker, [ring, store], owned, 0)
    assert {flow.kind for flow in tracker.flows.values()} == {FlowKind.CONTROL}
    # Enough at once is told at once.
    ring, store = ring._replace(bytes_sent=50_000_000), store._replace(bytes_sent=5_000)
    assert update(tracker, [ring, store], owned, 1).changed == [ring.tuple, store.tuple]
    assert tracker.flows[ring.tuple].kind is FlowKind.COLLECTIVE
    assert tracker.flows[store.tuple].kind is FlowKind.CONTROL
    # What is received counts, too, and a change of kind alone is a change.
    store = store._replace(bytes_received=MIN_BYTES + 40_000_000)
    assert update(tracker, [ring, store], owned, 2).changed == [store.tuple]
    assert tracker.flows[store.tuple].kind is FlowKind.COLLECTIVE
    ring = ring._replace(bytes_sent=10**12)
    assert update(tracker, [ring, store], owned, 3).changed == [ring.tuple]
    assert update(tracker, [ring, store], owned, 2 + KIND_NS).changed == [store.tuple]
    assert tracker.flows[store.tuple].kind is FlowKind.CONTROL


def test_what_collectives_have_sent_since_the_last_look(tracker):
    ring, back, store = (connection(port=port, cookie=port) for port in (1, 2, 3))
    other = connection(destination="10.0.3.1", port=4, cookie=4, inode=101, sent=10**9)
    assert update(tracker, [ring, back, store, other], owned, 0).sent == {}
    ring, back = ring._replace(bytes_sent=10**6), back._replace(bytes_sent=10**6)
    assert update(tracker, [ring, back, store, other], owned, 1).sent == {}  # nobody knew what they are
    ring, back = (
        ring._replace(bytes_sent=2 * 10**6, quiet_ms=30),
        back._replace(bytes_sent=4 * 10**6, quiet_ms=7),
    )
    store = store._replace(bytes_sent=5)
    assert update(tracker, [ring, back, store, other], owned, 2).sent == {"job1": Sent(4 * 10**6, 7)}
    assert tracker.refresh([other._replace(bytes_sent=10**9 + 9)], 3).sent == {"job2": Sent(9, 0)}
    other = other._replace(bytes_sent=10**9 + 9)
    assert update(tracker, [ring, back, store, other], owned, 4).sent == {}


def test_two_jobs_at_one_address_and_port_share_a_service(tracker):
    one = connection(port=1, cookie=1, sent=10**9)
    two = connection(port=2, cookie=2, inode=101, sent=10**9)
    update(tracker, [one], owned, 0)
    assert tracker.flows[one.tuple].kind is FlowKind.COLLECTIVE
    assert update(tracker, [one, two], owned, 1) == Changes(opened=[two.tuple], changed=[one.tuple])
    assert {flow.kind for flow in tracker.flows.values()} == {FlowKind.CONTROL}


def test_connections_between_two_looks_are_counted(tracker):
    update(tracker, [connection()], owned, 0)
    brief = connection(port=6001, cookie=11, inode=0, sent=700)
    tracker.destroyed([brief, brief._replace(cookie=12)])
    assert tracker.brief == {"job1": Brief(2, 1400)}
    # To where no job is, from where we do not speak, and within the host: none of ours.
    tracker.destroyed([connection(destination="10.0.9.9", cookie=13), connection("10.0.7.7", cookie=14)])
    assert tracker.brief == {"job1": Brief(2, 1400)}
    # Two jobs go there: it could be either's.
    update(tracker, [connection(), connection(port=5001, cookie=2, inode=101)], owned, 1)
    tracker.destroyed([brief._replace(cookie=15)])
    assert tracker.brief == {"job1": Brief(2, 1400)}


@pytest.mark.parametrize("told_first", [True, False])
def test_a_listed_connection_is_not_brief(tracker, told_first):
    update(tracker, [connection(), connection(port=5001, cookie=2)], owned, 0)
    if told_first:
        tracker.destroyed([connection()])
    assert update(tracker, [connection(port=5001, cookie=2)], owned, 1).closed == [connection().tuple]
    if not told_first:
        tracker.destroyed([connection()])
    assert tracker.brief == {}
    assert set(tracker.ignored) == set()
    # Nor is a stranger's that was listed.
    for now in range(LOOKUPS):
        update(tracker, [connection(port=5001, cookie=2), connection(port=7, cookie=3, inode=9)], owned, now)
        if now == 0:
            tracker.destroyed([connection(port=8, cookie=3, inode=0)])
    tracker.destroyed([connection(port=7, cookie=3, inode=0)])
    assert (tracker.brief, set(tracker.ignored)) == ({}, set())


def test_other_addresses_to_speak_for(tracker):
    container = connection("10.0.3.1", cookie=5)
    assert update(tracker, [container], owned, 0) == Changes()
    tracker.speak_for([packed("10.0.1.1"), packed("10.0.3.1")])
    assert tracker.addresses == {packed("10.0.1.1"), packed("10.0.3.1")}
    assert update(tracker, [container], owned, 1).opened == [container.tuple]


def test_what_nccl_names_is_a_collective_of_its_communicator():
    told = {}
    tracker = FlowTracker([packed("10.0.1.1")], lambda job, key: told.get((job, key), 0))
    one = connection(sent=10)
    update(tracker, [one], owned, 0)
    assert (tracker.flows[one.tuple].kind, tracker.flows[one.tuple].communicator) == (FlowKind.CONTROL, 0)
    told["job2", one.tuple] = 88  # another job's word does not count
    told["job1", one.tuple] = 77
    assert update(tracker, [one], owned, 2 * KIND_NS) == Changes()  # nothing moves: nothing is told anew
    tracker.retell()
    assert update(tracker, [one], owned, 2 * KIND_NS + 1).changed == [one.tuple]
    assert (tracker.flows[one.tuple].kind, tracker.flows[one.tuple].communicator) == (FlowKind.COLLECTIVE, 77)


def test_flows_may_be_looked_at_by_themselves(tracker):
    one, two = connection(port=1, cookie=1), connection(port=2, cookie=2)
    update(tracker, [one, two], owned, 0)
    assert tracker.known == {1: one.tuple, 2: two.tuple}
    # What is not among them is not closed; a stranger is none of ours.
    assert tracker.refresh([one._replace(bytes_sent=500), connection(port=3, cookie=3)], 1) == Changes(
        changed=[one.tuple]
    )
    assert tracker.refresh([one._replace(bytes_sent=MIN_BYTES)], 2).changed == [one.tuple]
    assert tracker.flows[one.tuple].kind is FlowKind.COLLECTIVE
    assert tracker.refresh([one._replace(bytes_sent=MIN_BYTES)], 3) == Changes()
    assert len(tracker.flows) == 2


def test_one_users_flows_are_bounded_and_leave_others_theirs(monkeypatch):
    monkeypatch.setattr(module, "MAX_FLOWS", 3)
    users = {"job1": 1000, "job2": 1000, "job3": 1001}
    tracker = FlowTracker([packed("10.0.1.1")], user=users.__getitem__)
    crowd = [connection(port=port, cookie=port, inode=100 + port % 2) for port in range(1, 9)]
    other = connection(port=9, cookie=9, inode=109)
    owners = {100: "job1", 101: "job2", 109: "job3"}
    changes = update(tracker, [*crowd, other], lambda: owners, 0)
    assert changes.opened == [*(one.tuple for one in crowd[:3]), other.tuple]
    assert tracker.crowded == {1000}
    assert set(tracker.ignored) == {one.cookie for one in crowd[3:]}
    # Where some have closed there is room again, once owners are looked for anew.
    tracker.forget_strangers()
    changes = update(tracker, [*crowd[2:], other], lambda: owners, 1)
    assert (len(changes.opened), len(changes.closed)) == (0, 2)
    assert len(update(tracker, [*crowd[2:], other], lambda: owners, 2).opened) == 0
    tracker.forget_strangers()
    assert len(update(tracker, [*crowd[2:], other], lambda: owners, 3).opened) == 2
