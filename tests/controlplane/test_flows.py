"""What hosts say of their flows."""

from ipaddress import ip_address

from controlplane.flows import Flows, KnownFlow
from controlplane.model import FiveTuple
from controlplane.reports import MAX_FLOWS, FlowReport, HostReport


def flow(port, source="10.0.1.1"):
    return FiveTuple(ip_address(source), ip_address("10.0.2.1"), 6, port, 5000)


def report(*flows, closed=(), full=False):
    return HostReport(0, full, flows=flows, closed=tuple(closed))


def test_flows_open_grow_and_close():
    flows = Flows(100)
    change = flows.observe("h1", report(FlowReport(flow(1), "a", 10), FlowReport(flow(2), "b", 0)))
    assert change.opened == (flow(1), flow(2))
    change = flows.observe("h1", report(FlowReport(flow(1), "a", 99), closed=[flow(2), flow(3)]))
    assert (change.opened, change.closed) == ((), (flow(2),))
    assert flows.known == {flow(1): KnownFlow("h1", "a", 99)}


def test_bytes_never_go_back():
    flows = Flows(100)
    flows.observe("h1", report(FlowReport(flow(1), "a", 99)))
    flows.observe("h1", report(FlowReport(flow(1), "a", 5)))
    assert flows.known[flow(1)].bytes_sent == 99


def test_a_full_report_replaces_what_its_host_said_and_nothing_else():
    flows = Flows(100)
    flows.observe("h1", report(FlowReport(flow(1), "a", 1), FlowReport(flow(2), "a", 1)))
    flows.observe("h2", report(FlowReport(flow(1, "10.0.3.1"), "a", 1)))
    change = flows.observe("h1", report(FlowReport(flow(2), "a", 1), FlowReport(flow(3), "a", 1), full=True))
    assert (change.opened, change.closed) == ((flow(3),), (flow(1),))
    assert set(flows) == {flow(2), flow(3), flow(1, "10.0.3.1")}


def test_a_flow_that_closes_and_opens_in_one_report_is_new():
    flows = Flows(100)
    flows.observe("h1", report(FlowReport(flow(1), "a", 99)))
    change = flows.observe("h1", report(FlowReport(flow(1), "a", 5), closed=[flow(1)]))
    assert (change.opened, change.closed) == ((flow(1),), (flow(1),))
    assert flows.known[flow(1)].bytes_sent == 5


def test_flows_are_ranked_once_they_have_sent_enough_and_are_no_control():
    flows = Flows(100)
    change = flows.observe("h1", report(FlowReport(flow(1), "a", 99), FlowReport(flow(2), "a", 500, True)))
    assert (change.ranked, list(flows.ranked())) == (False, [])
    assert flows.observe("h1", report(FlowReport(flow(1), "a", 100))).ranked
    assert not flows.observe("h1", report(FlowReport(flow(2), "a", 900, True))).ranked
    assert list(flows.ranked()) == [(flow(1), "a")]
    # It is a collective after all.
    assert flows.observe("h1", report(FlowReport(flow(2), "a", 900, False))).ranked
    assert list(flows.ranked()) == [(flow(1), "a"), (flow(2), "a")]
    assert flows.observe("h1", report(FlowReport(flow(2), "a", 900, True))).ranked


def test_forgetting_a_host_closes_its_flows():
    flows = Flows(100)
    flows.observe("h1", report(FlowReport(flow(1), "a", 1)))
    assert flows.forget("h1").closed == (flow(1),)
    assert flows.forget("h1").closed == ()
    assert len(flows) == 0


def test_one_host_cannot_fill_the_memory_with_flows():
    flows = Flows(100)
    many = [
        FlowReport(flow(port % 65535 + 1, f"10.0.1.{port // 65535}"), "a", 1) for port in range(MAX_FLOWS)
    ]
    assert flows.observe("h1", report(*many)).refused == 0
    change = flows.observe("h1", report(FlowReport(flow(1, "10.9.9.9"), "a", 1)))
    assert (change.opened, change.refused) == ((), 1)
    assert len(flows) == MAX_FLOWS


def test_flows_are_to_be_ranked_once_they_have_sent_enough():
    flows = Flows(100)
    assert not flows.observe("h1", report(FlowReport(flow(1), "a", 99))).ranked
    assert list(flows.ranked()) == []
    assert flows.observe("h1", report(FlowReport(flow(1), "a", 100))).ranked
    assert list(flows.ranked()) == [(flow(1), "a")]
    assert not flows.observe("h1", report(FlowReport(flow(1), "a", 500))).ranked
    assert flows.observe("h1", report(FlowReport(flow(1), "b", 500))).ranked
    assert flows.observe("h1", report(closed=[flow(1)])).ranked
    assert not flows.forget("h1").ranked
