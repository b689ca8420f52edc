"""Flows out of the halves of RDMA connections that hosts report."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.flows import Flows
from controlplane.model import FiveTuple
from controlplane.queue_pairs import Owner, QueuePairs
from controlplane.reports import HostReport, QueuePairReport


def half(host, local, remote, job="job1", port=50_000, comm=0):
    return QueuePairReport(ip_address(f"10.0.0.{host}"), job, local, remote, port, comm)


def flow(source, destination, qp, port=50_000):
    addresses = (ip_address(f"10.0.0.{host}") for host in (source, destination))
    return FiveTuple(*addresses, 17, port, 4791, qp)


@pytest.fixture
def pairs():
    return QueuePairs()


def test_two_halves_make_a_flow_in_each_direction(pairs):
    assert pairs.observe("h1", [half(1, 100, 200)])
    assert pairs.flows() == {}
    assert pairs.alone == 1
    assert pairs.observe("h2", [half(2, 200, 100, port=51_000)])
    # What h1 sends carries h2's number in its BTH, and h1's UDP source port.
    assert pairs.flows() == {
        flow(1, 2, 200): Owner("h1", "job1"),
        flow(2, 1, 100, 51_000): Owner("h2", "job1"),
    }
    assert (pairs.alone, pairs.ambiguous) == (0, 0)
    assert not pairs.observe("h2", [half(2, 200, 100, port=51_000)])


def test_numbers_of_other_jobs_and_other_families_do_not_fit(pairs):
    pairs.observe("h1", [half(1, 100, 200)])
    pairs.observe("h2", [half(2, 200, 100, "job2")])
    pairs.observe("h3", [half(3, 200, 100)._replace(source=ip_address("fd00::3"))])
    pairs.observe("h4", [half(4, 100, 200)])  # not exchanged
    assert pairs.flows() == {}
    assert pairs.alone == 4


def test_a_host_is_not_its_own_peer(pairs):
    pairs.observe("h1", [half(1, 100, 100), half(1, 200, 300), half(1, 300, 200)])
    assert pairs.flows() == {}


def test_halves_that_fit_several_are_ambiguous_and_never_guessed(pairs):
    pairs.observe("h1", [half(1, 100, 200)])
    pairs.observe("h2", [half(2, 200, 100)])
    pairs.observe("h3", [half(3, 200, 100)])
    assert pairs.flows() == {}
    assert pairs.ambiguous == 3
    # NCCL's plugin tells which communicator each belongs to: h2's is another.
    pairs.observe("h1", [half(1, 100, 200, comm=7)])
    pairs.observe("h2", [half(2, 200, 100, comm=8)])
    pairs.observe("h3", [half(3, 200, 100, comm=7)])
    assert set(pairs.flows()) == {flow(1, 3, 200), flow(3, 1, 100)}
    assert (pairs.alone, pairs.ambiguous) == (1, 0)


def test_a_pair_stays_whatever_a_third_host_guesses(pairs):
    mine = {flow(1, 2, 301): Owner("h1", "job1"), flow(2, 1, 300): Owner("h2", "job1")}
    pairs.observe("h1", [half(1, 300, 301)])
    pairs.observe("h2", [half(2, 301, 300)])
    assert pairs.flows() == mine
    guesses = [half(3, one, other) for one in range(256, 384) for other in range(256, 384) if one != other]
    pairs.observe("h3", guesses)
    assert pairs.flows() == mine
    assert (pairs.alone, pairs.ambiguous) == (len(guesses), 0)
    # That the communicator is known by now makes it no other half.
    pairs.observe("h1", [half(1, 300, 301, comm=7)])
    pairs.observe("h2", [half(2, 301, 300, comm=7)])
    assert pairs.flows() == mine
    # Given up on both sides, and made again: by now it may be either's.
    pairs.observe("h1", [])
    pairs.observe("h2", [])
    assert pairs.flows() == {}
    pairs.observe("h1", [half(1, 300, 301)])
    pairs.observe("h2", [half(2, 301, 300)])
    assert pairs.flows() == {}
    assert pairs.ambiguous == 4


def test_a_pair_whose_communicators_turn_out_to_differ_is_none(pairs):
    pairs.observe("h1", [half(1, 100, 200)])
    pairs.observe("h3", [half(3, 200, 100)])
    assert len(pairs.flows()) == 2
    pairs.observe("h1", [half(1, 100, 200, comm=7)])
    pairs.observe("h2", [half(2, 200, 100, comm=7)])
    assert set(pairs.flows()) == {flow(1, 3, 200), flow(3, 1, 100)}  # as far as is known
    pairs.observe("h3", [half(3, 200, 100, comm=8)])
    assert set(pairs.flows()) == {flow(1, 2, 200), flow(2, 1, 100)}


def test_queue_pairs_on_one_five_tuple_are_flows_of_their_own(pairs):
    """Two jobs between two hosts whose numbers give one source port: the BTH tells them apart."""
    pairs.observe("h1", [half(1, 3, 8), half(1, 4, 6, "job2")])
    pairs.observe("h2", [half(2, 8, 3), half(2, 6, 4, "job2")])
    flows = pairs.flows()
    one, two = flow(1, 2, 8), flow(1, 2, 6)
    assert one._replace(destination_qp=0) == two._replace(destination_qp=0)
    assert (flows[one].job, flows[two].job) == ("job1", "job2")


def test_a_host_that_is_forgotten(pairs):
    pairs.observe("h1", [half(1, 100, 200)])
    pairs.observe("h2", [half(2, 200, 100)])
    assert pairs.forget("h2")
    assert not pairs.forget("h2")
    assert pairs.flows() == {}


HALVES = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2)),
    max_size=12,
    unique_by=lambda half: half[:2],  # a host has a number once
)


@given(HALVES)
def test_flows_come_in_pairs_between_different_hosts(halves):
    pairs, of_host = QueuePairs(), {}
    for host, local, remote, comm in halves:
        of_host.setdefault(host, []).append(half(host, local, remote, comm=comm))
    for host, mine in of_host.items():
        pairs.observe(f"h{host}", mine)
    flows = pairs.flows()
    for key, owner in flows.items():
        assert key.source != key.destination
        assert owner.host == f"h{str(key.source).rpartition('.')[2]}"
        backs = [
            other for other in flows if (other.source, other.destination) == (key.destination, key.source)
        ]
        assert backs
    total = sum(len(set(mine)) for mine in of_host.values())
    assert len(flows) + pairs.alone + pairs.ambiguous == total


def report(*pairs, full=False):
    return HostReport(1, full, queue_pairs=pairs)


def test_paired_flows_come_and_go_with_the_halves():
    flows = Flows(65_536)
    assert flows.observe("h1", report(half(1, 100, 200), full=True)).opened == ()
    change = flows.observe("h2", report(half(2, 200, 100)))
    assert set(change.opened) == {flow(1, 2, 200), flow(2, 1, 100)}
    assert change.ranked
    # Their bytes cannot be counted: they are to be ranked at once.
    assert dict(flows.ranked()) == dict.fromkeys(change.opened, "job1")
    assert flows.known[flow(1, 2, 200)].host == "h1"
    # A report that says nothing of queue pairs, or a full one of h1 with the same, changes nothing.
    assert not flows.observe("h2", HostReport(2, full=False)).ranked
    assert not flows.observe("h1", report(half(1, 100, 200), full=True)).closed
    assert set(flows.observe("h1", report()).closed) == {flow(1, 2, 200), flow(2, 1, 100)}
    flows.observe("h1", report(half(1, 100, 200)))
    assert set(flows.forget("h1").closed) == {flow(1, 2, 200), flow(2, 1, 100)}
    assert len(flows) == 0
