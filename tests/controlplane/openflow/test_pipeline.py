from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.openflow.entries import (
    CONTROLLER,
    DecrementTtl,
    Ecmp,
    Flow,
    Output,
    SetField,
    SetQueue,
    UnsupportedError,
    egress_port,
)
from controlplane.openflow.pipeline import Pipeline, static
from controlplane.southbound.tables import Call
from tests.controlplane.openflow.rows import INT_DSCP, PIPELINE, rows

V4, V6 = 0x0800, 0x86DD


@given(st.lists(rows, unique_by=lambda row: row[:2]))
def test_what_is_written_is_what_is_read(wanted: list) -> None:
    flows = [flow for row in wanted for flow in PIPELINE.encode(*row)]
    assert len({flow.key for flow in flows}) == len(flows), "two rows share an entry"
    assert PIPELINE.decode([*flows, *static(INT_DSCP)]) == ({(t, key): call for t, key, call in wanted}, [])


@given(rows, st.data())
def test_a_row_that_lacks_an_entry_is_seen_to_differ(row: tuple, data: st.DataObject) -> None:
    flows = PIPELINE.encode(*row)
    there = data.draw(st.lists(st.sampled_from(flows), max_size=len(flows) - 1, unique=True))
    found, _ = PIPELINE.decode(there)
    assert found.get(row[:2]) in (None, Call("incomplete"))


@given(rows)
def test_the_entries_to_take_away_are_all_that_a_row_may_have_made(row: tuple) -> None:
    may_hold = {flow.key for flow in PIPELINE.may_hold(*row[:2])}
    assert may_hold >= {flow.key for flow in PIPELINE.encode(*row)}


def test_a_flow_and_what_goes_against_it() -> None:
    key = (int(IPv4Address("10.0.0.1")), int(IPv4Address("10.0.0.2")), 6, 1000, 29500)
    there = (
        ("eth_type", V4),
        ("ip_proto", 6),
        ("ipv4_dst", "10.0.0.2"),
        ("ipv4_src", "10.0.0.1"),
        ("tcp_dst", 29500),
        ("tcp_src", 1000),
    )
    back = (
        ("eth_type", V4),
        ("ip_proto", 6),
        ("ipv4_dst", "10.0.0.1"),
        ("ipv4_src", "10.0.0.2"),
        ("tcp_dst", 1000),
        ("tcp_src", 29500),
    )
    assert PIPELINE.encode("flow_group_v4", key, Call("set_group", (3, 9))) == [
        Flow(table=2, priority=100, match=there, metadata=(3, 0xFFFF), goto=3, cookie=9),
        Flow(table=2, priority=90, match=back, metadata=(3, 0xFFFF), goto=3, cookie=9),
    ]


def test_a_re_ranking_is_one_entry() -> None:
    assert PIPELINE.encode("active_bank", (), Call("set_bank", (1,))) == [
        Flow(table=1, priority=1, metadata=(0x10000, 0x10000), goto=2)
    ]


def test_a_group_level_matches_bank_and_group() -> None:
    (flow,) = PIPELINE.encode("group_level", (1, 3), Call("set_level", (5, 500, 7)))
    assert flow.match == (("metadata", (0x10003, 0x1FFFF)),)
    assert flow.metadata == (5 << 24, 0xFF << 24)


def test_a_level_sets_queue_and_dscp() -> None:
    plain = PIPELINE.encode("level_queue", (7,), Call("set_queue", (7, 0, 0)))
    assert [flow.actions for flow in plain] == [(SetQueue(7),)]
    marking = PIPELINE.encode("level_queue", (4,), Call("set_queue", (4, 12, 1)))
    assert [flow.actions for flow in marking] == [(SetQueue(4), SetField("ip_dscp", 12))] * 2
    assert [dict(flow.match)["eth_type"] for flow in marking] == [V4, V6]


def test_an_unmarked_level_takes_the_marking_entries_away() -> None:
    matches = {dict(flow.match).get("eth_type") for flow in PIPELINE.may_hold("level_queue", (4,))}
    assert matches == {None, V4, V6}


def test_probes_go_at_the_control_level_and_default_traffic_at_the_default() -> None:
    flows = PIPELINE.encode("default_level", (), Call("set_default_level", (2, 7)))
    assert {(flow.table, flow.match, flow.metadata, flow.goto) for flow in flows} == {
        (3, (), (2 << 24, 0xFF << 24), 4),
        (1, (("eth_type", V4), ("ip_dscp", INT_DSCP)), (7 << 24, 0xFF << 24), 4),
        (1, (("eth_type", V6), ("ip_dscp", INT_DSCP)), (7 << 24, 0xFF << 24), 4),
    }


def test_longer_prefixes_come_first() -> None:
    network = int(IPv4Address("10.0.2.0"))
    (short,) = PIPELINE.encode("ipv4_lpm", ((0, 0),), Call("set_ecmp", (1, 2)))
    (long,) = PIPELINE.encode("ipv4_lpm", ((network, 24),), Call("set_nhop", (3, 0x02_00_00_00_00_01)))
    assert short == Flow(5, 1, (("eth_type", V4),), (DecrementTtl(), Ecmp(1)), cookie=2)
    assert long == Flow(
        5,
        25,
        (("eth_type", V4), ("ipv4_dst", ("10.0.2.0", "255.255.255.0"))),
        (SetField("eth_dst", "02:00:00:00:00:01"), DecrementTtl()),
        (3 << 32, 0xFFFF << 32),
        6,
    )


def test_ipv6_prefix() -> None:
    network = int(IPv6Address("fd00:0:0:2::"))
    (flow,) = PIPELINE.encode("ipv6_lpm", ((network, 64),), Call("drop"))
    assert flow == Flow(5, 65, (("eth_type", V6), ("ipv6_dst", ("fd00:0:0:2::", "ffff:ffff:ffff:ffff::"))))


def test_a_probe_leaves_towards_switches_only() -> None:
    sunk = [flow for flow in static(INT_DSCP) if flow.actions == (Output(CONTROLLER),)]
    relayed = PIPELINE.encode("int_sink", (2,), Call("relay"))
    out = [flow for flow in PIPELINE.encode("edge_port", (2,), Call("fabric_facing")) if flow.table == 6]
    assert {flow.table for flow in (*sunk, *relayed)} == {6}
    assert [flow.actions for flow in (*relayed, *out)] == [(Output(2),)] * 3
    assert min(flow.priority for flow in relayed) > max(flow.priority for flow in sunk)
    assert min(flow.priority for flow in sunk) > max(flow.priority for flow in out)
    assert egress_port(dict(out[0].match)["metadata"][0]) == 2


@pytest.mark.parametrize(
    ("table", "key", "reason"),
    [
        ("flow_group_qp_v4", (1, 2, 3), "OpenFlow 1.3 cannot match a RoCEv2 queue pair"),
        ("flow_group_v4", (1, 2, 47, 0, 0), "OpenFlow 1.3 cannot match the ports of IP protocol 47"),
    ],
)
def test_what_cannot_be_said_is_refused(table: str, key: tuple, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        PIPELINE.encode(table, key, Call("set_group", (1, 1)))


def test_a_host_may_send_what_may_be_probes_through_its_meter_and_nothing_else_so_marked() -> None:
    edge = [flow for flow in PIPELINE.encode("edge_port", (3,), Call("host_facing")) if flow.table == 0]
    assert {dict(flow.match)["ip_proto"] for flow in edge} == {6, 17}
    assert {dict(flow.match)["eth_type"] for flow in edge} == {V4, V6}
    assert {(dict(flow.match)["in_port"], dict(flow.match)["ip_dscp"]) for flow in edge} == {(3, INT_DSCP)}
    assert {(flow.meter, flow.goto) for flow in edge} == {(3, 1)}
    refused = [flow for flow in static(INT_DSCP) if flow.table == 0 and flow.match]
    assert [dict(flow.match) for flow in refused] == [
        {"eth_type": kind, "ip_dscp": INT_DSCP} for kind in (V4, V6)
    ]
    assert {(flow.actions, flow.goto) for flow in refused} == {((), None)}
    assert max(flow.priority for flow in refused) < min(flow.priority for flow in edge)


def test_from_another_switch_everything_comes_in() -> None:
    edge = [flow for flow in PIPELINE.encode("edge_port", (3,), Call("fabric_facing")) if flow.table == 0]
    assert edge == [Flow(0, 20, (("in_port", 3),), goto=1)]


@pytest.mark.parametrize("max_meter", [0, 2])
def test_without_a_meter_probes_come_in_all_the_same(max_meter: int) -> None:
    flows = Pipeline(INT_DSCP, max_meter).encode("edge_port", (3,), Call("host_facing"))
    with_meters = PIPELINE.encode("edge_port", (3,), Call("host_facing"))
    assert [flow.key for flow in flows] == [flow.key for flow in with_meters]
    assert {flow.meter for flow in flows} == {None}


def test_a_port_of_which_entries_of_both_kinds_are_there_is_seen_to_differ() -> None:
    host = PIPELINE.encode("edge_port", (3,), Call("host_facing"))
    fabric = PIPELINE.encode("edge_port", (3,), Call("fabric_facing"))
    for flows in ([*host[:-1], *fabric], [*fabric, *host[:-1]]):
        assert PIPELINE.decode(flows)[0] == {("edge_port", (3,)): Call("incomplete")}


@pytest.mark.parametrize("table", ["burst_gap", "ecmp_seed", "int_node"])
def test_what_need_not_be_said_is_left_out(table: str) -> None:
    assert PIPELINE.encode(table, (), Call("", (1,))) == []


def test_rows_that_are_not_whole_are_told_with_what_there_is_of_them() -> None:
    flow = ("flow_group_v4", (1, 2, 6, 3, 4))
    level = PIPELINE.encode("default_level", (), Call("set_default_level", (1, 7)))
    flows = [PIPELINE.encode(*flow, Call("set_group", (5, 6)))[0], *level[:2]]
    rows, _ = PIPELINE.decode(flows)
    assert rows == {flow: Call("incomplete"), ("default_level", ()): Call("incomplete")}
    assert PIPELINE.partial(rows, flows) == {flow: 1, ("default_level", ()): 2, ("active_bank", ()): 0}


def test_entries_of_somebody_else_are_told() -> None:
    foreign = [Flow(0, 7, (("in_port", 3),)), Flow(9, 1)]
    assert PIPELINE.decode([*static(INT_DSCP), *foreign]) == ({}, foreign)
