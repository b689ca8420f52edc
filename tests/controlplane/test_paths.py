from ipaddress import IPv4Address

import pytest

from controlplane.int_report import Hop, IntReport
from controlplane.model import FiveTuple, Link
from controlplane.paths import INSTRUCTIONS, PathError, Paths, path_of

NODES = {11: "S1", 12: "S2", 21: "S3"}
FLOW = FiveTuple(IPv4Address("10.0.1.1"), IPv4Address("10.0.2.2"), 6, 41000, 29500)
PATH = (Link("S1", 3), Link("S3", 2), Link("S2", 1))
VIA = (Hop(11, 1, 3), Hop(21, 1, 2), Hop(12, 3, 1))


def report(*hops, flow=FLOW, hops_exceeded=False, mtu_exceeded=False):
    return IntReport(flow, hops, hops_exceeded, mtu_exceeded, 8, 0)


def flow(port, qp=0):
    return FLOW._replace(source_port=port, destination_qp=qp)


def test_path_of_nodes_and_egress_ports():
    assert path_of(report(*VIA), NODES) == PATH


def test_a_switch_that_adds_no_hop_is_on_the_path_by_its_cable():
    behind = {Link("S3", 1): Link("V1", 5)}
    through_it = report(Hop(21, 1, 2), Hop(12, 3, 1))
    assert path_of(through_it, NODES, behind) == (Link("V1", 5), Link("S3", 2), Link("S2", 1))
    elsewhere = report(Hop(21, 4, 2), Hop(12, 3, 1))
    assert path_of(elsewhere, NODES, behind) == (Link("S3", 2), Link("S2", 1))
    paths = Paths(NODES, behind=behind)
    paths.add(FLOW)
    assert paths.sunk(through_it, 0.0).path == (Link("V1", 5), Link("S3", 2), Link("S2", 1))


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (report(), "no switch"),
        (report(*VIA, hops_exceeded=True), "no room"),
        (report(*VIA, mtu_exceeded=True), "no room"),
        (report(Hop(11, 1, 3), Hop(99, 1, 2)), "hop 2 is node 99"),
        (report(Hop(11, 1, None)), "hop 1 does not tell"),
        (report(Hop(None, 1, 3)), "hop 1 does not tell"),
        (report(Hop(11, 1, 3), Hop(21, 1, 2), Hop(11, 2, 1)), "a loop: S1:3, S3:2, S1:1"),
    ],
)
def test_reports_that_are_no_path(bad, says):
    with pytest.raises(PathError, match=says):
        path_of(bad, NODES)


def test_a_new_flow_is_probed_at_once_and_its_path_learnt():
    paths = Paths(NODES)
    paths.add(FLOW)
    (probe,) = paths.due(10.0)
    assert probe.flow == FLOW
    assert paths.due(10.1) == []
    assert (paths.path(FLOW), paths.pending()) == (None, 1)
    learnt = paths.sunk(report(*VIA), 10.15)
    assert (learnt.flows, learnt.path, learnt.changed) == ((FLOW,), PATH, True)
    assert (paths.path(FLOW), paths.pending()) == (PATH, 0)


def test_a_lost_probe_is_sent_again_ever_more_slowly():
    paths = Paths(NODES, retry_s=0.25, refresh_s=1.5)
    paths.add(FLOW)
    sent = [(step / 8, probe.number) for step in range(60) for probe in paths.due(step / 8)]
    times = [at for at, _ in sent]
    assert times == [0.0, 0.25, 0.75, 1.75, 3.25, 4.75, 6.25]
    assert len({number for _, number in sent}) == len(sent)


def test_a_known_path_is_refreshed_and_a_change_is_told():
    paths = Paths(NODES, refresh_s=30.0)
    paths.add(FLOW)
    paths.due(0.0)
    paths.sunk(report(*VIA), 0.1)
    assert paths.due(30.0) == []
    assert len(paths.due(30.2)) == 1
    assert not paths.sunk(report(*VIA), 30.3).changed
    other = paths.sunk(report(Hop(11, 1, 2), Hop(12, 2, 1)), 31.0)
    assert (other.changed, other.path) == (True, (Link("S1", 2), Link("S2", 1)))


def test_reprobe_asks_for_all_at_once():
    paths = Paths(NODES)
    for port in (1, 2):
        paths.add(flow(port))
    paths.due(0.0)
    paths.sunk(report(*VIA, flow=flow(1)), 0.1)
    paths.reprobe()
    assert {probe.flow for probe in paths.due(0.2)} == {flow(1), flow(2)}
    assert paths.path(flow(1)) == PATH


def test_queue_pairs_share_one_probe_and_its_path():
    paths = Paths(NODES)
    for qp in (7, 8):
        paths.add(flow(5, qp))
    (probe,) = paths.due(0.0)
    assert probe.flow == flow(5, 7)
    assert paths.sunk(report(*VIA, flow=flow(5)), 0.1).flows == (flow(5, 7), flow(5, 8))
    assert paths.path(flow(5, 8)) == PATH
    paths.remove(flow(5, 7))
    assert paths.path(flow(5, 8)) == PATH


def test_a_probe_of_nobody_and_a_bad_one_change_nothing():
    paths = Paths(NODES)
    paths.add(FLOW)
    paths.due(0.0)
    with pytest.raises(PathError, match="no known flow tcp"):
        paths.sunk(report(*VIA, flow=flow(9)), 0.1)
    paths.sunk(report(*VIA), 0.1)
    with pytest.raises(PathError):
        paths.sunk(report(Hop(99, 1, 3)), 0.2)
    assert paths.path(FLOW) == PATH


def test_removed_flows_are_forgotten():
    paths = Paths(NODES)
    paths.add(FLOW)
    (probe,) = paths.due(0.0)
    paths.remove(FLOW)
    paths.remove(FLOW)
    assert (paths.due(100.0), paths.path(FLOW), paths.not_sent(probe.number, 1.0)) == ([], None, None)


def test_a_probe_that_could_not_be_sent_is_retried_soon():
    paths = Paths(NODES, retry_s=0.2)
    paths.add(FLOW)
    (probe,) = paths.due(0.0)
    assert paths.not_sent(probe.number, 0.1) == FLOW
    assert paths.not_sent(probe.number + 1, 0.1) is None
    assert paths.due(0.25) == []
    assert len(paths.due(0.31)) == 1


def test_instructions_ask_for_what_a_path_needs():
    assert INSTRUCTIONS & 0xC000 == 0xC000
    assert INSTRUCTIONS & 0x007F == 0  # the program answers bits 0 to 8
