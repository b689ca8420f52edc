"""Counters of entries that come, go and move, added up."""

from ipaddress import ip_address

from controlplane.model import FiveTuple
from controlplane.tally import Tally

H1, H2 = (ip_address(f"10.0.{n}.1") for n in (1, 2))


def flow(port, source=H1):
    return FiveTuple(source, H2, 6, port, 5000)


def test_adds_up_by_job_and_flow_from_the_first_reading_on():
    tally = Tally()
    tally.place({("S1", flow(1)): "a", ("S1", flow(1, H2)): "a", ("S1", flow(3)): "b"})
    tally.observe("S1", {flow(1): 10, flow(1, H2): 7, flow(3): 1, flow(9): 99})
    assert tally.of("a") == {flow(1): 0, flow(1, H2): 0}
    tally.observe("S1", {flow(1): 30, flow(1, H2): 8, flow(3): 4, flow(9): 999})
    assert (tally.of("a"), tally.of("b"), tally.of("c")) == (
        {flow(1): 20, flow(1, H2): 1},
        {flow(3): 3},
        {},
    )


def test_an_entry_that_is_made_anew_counts_from_zero():
    tally = Tally()
    tally.place({("S1", flow(1)): "a"})
    for count in (10, 14, 4, 6):
        tally.observe("S1", {flow(1): count})
    assert tally.of("a") == {flow(1): 10}


def test_a_reading_that_was_under_way_as_the_first_switch_changed_is_not_counted():
    tally = Tally()
    tally.place({("S1", flow(1)): "a"})
    for count in (10, 20):
        tally.observe("S1", {flow(1): count})
    tally.place({("S2", flow(1)): "a"})
    tally.observe("S1", {flow(1): 10**9})
    tally.observe("S2", {flow(1): 10**9})  # its whole history, as a switch further on
    tally.observe("S2", {flow(1): 10**9 + 5})
    assert tally.of("a") == {flow(1): 15}


def test_a_flow_that_is_closed_and_back_while_its_entry_stays_is_counted_once():
    tally = Tally()
    tally.place({("S1", flow(1)): "a", ("S1", flow(2)): "a"})
    for count in (10, 20):
        tally.observe("S1", {flow(1): count, flow(2): count})
    tally.place({("S1", flow(2)): "a"})
    assert tally.of("a") == {flow(2): 10}
    tally.place({("S1", flow(1)): "a", ("S1", flow(2)): "a"})
    tally.observe("S1", {flow(1): 25, flow(2): 25})
    assert tally.of("a") == {flow(1): 0, flow(2): 15}
    tally.place({("S1", flow(2)): "b"})
    assert tally.of("a") == {}


def test_a_flow_without_an_entry_is_not_counted():
    tally = Tally()
    tally.place({("S1", flow(1)): "a"})
    tally.observe("S1", {})
    assert tally.of("a") == {}
