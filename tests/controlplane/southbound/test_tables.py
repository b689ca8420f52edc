from ipaddress import IPv4Address, IPv6Address, ip_network

from controlplane.model import FiveTuple
from controlplane.southbound import FlowEntry, GroupLevel, LevelQueue, NextHop, Setup
from controlplane.southbound.tables import (
    FLOW_TABLES,
    Call,
    Wanted,
    active_bank,
    at_most,
    bank_rows,
    flow_rows,
    flow_rows_in_parts,
    group_rows,
    held,
    setup_rows,
)

A4, B4 = IPv4Address("10.0.1.1"), IPv4Address("10.0.2.2")
A6, B6 = IPv6Address("fd00::1"), IPv6Address("fd00::2")
LEFT, RIGHT = NextHop(2, "02:00:00:00:00:02"), NextHop(3, "02:00:00:00:01:03")


def setup(**changes):
    return Setup(
        **{
            "level_queue": {0: LevelQueue(0), 1: LevelQueue(5, dscp=10)},
            "node_id": 7,
            "host_ports": frozenset({1}),
            **changes,
        }
    )


def test_setup_decides_the_configured_tables():
    rows = setup_rows(
        setup(
            fabric_ports=frozenset({2, 3}), ecmp_seed=99, default_level=1, control_level=6, burst_gap_us=500
        )
    )
    assert rows["level_queue"] == {(0,): Call("set_queue", (0, 0, 0)), (1,): Call("set_queue", (5, 10, 1))}
    assert rows["edge_port"] == {
        (1,): Call("host_facing"),
        (2,): Call("fabric_facing"),
        (3,): Call("fabric_facing"),
    }
    assert rows["int_sink"] == {(2,): Call("relay"), (3,): Call("relay")}
    assert rows["int_node"] == {(): Call("set_int_node", (7,))}
    assert rows["ecmp_seed"] == {(): Call("set_seed", (99,))}
    assert rows["default_level"] == {(): Call("set_default_level", (1, 6))}
    assert rows["burst_gap"] == {(): Call("set_burst_gap", (500,))}


def test_dscp_zero_is_a_dscp():
    assert setup_rows(setup(level_queue={0: LevelQueue(0, 0)}))["level_queue"] == {
        (0,): Call("set_queue", (0, 0, 1))
    }


def test_routes_with_one_more_or_no_next_hop():
    rows = setup_rows(
        setup(
            routes={
                ip_network("10.0.1.0/24"): (LEFT,),
                ip_network("0.0.0.0/0"): (LEFT, RIGHT),
                ip_network("10.9.0.0/16"): (LEFT, RIGHT),
                ip_network("10.8.0.0/16"): (RIGHT, LEFT),
                ip_network("10.7.0.0/16"): (),
                ip_network("fd00::/64"): (RIGHT,),
            }
        )
    )
    lpm = rows["ipv4_lpm"]
    assert lpm[(0x0A000100, 24),] == Call("set_nhop", (2, 0x020000000002))
    assert lpm[(0x0A070000, 16),] == Call("drop")
    shared = lpm[(0, 0),]
    assert shared.action == "set_ecmp"
    assert lpm[(0x0A090000, 16),] == shared
    assert lpm[(0x0A080000, 16),] != shared
    group, count = shared.args
    assert count == 2
    assert [rows["ecmp"][group, member].args for member in range(2)] == [
        (2, 0x020000000002),
        (3, 0x020000000103),
    ]
    assert len(rows["ecmp"]) == 4
    assert rows["ipv6_lpm"] == {((0xFD00 << 112, 64),): Call("set_nhop", (3, 0x020000000103))}


def test_forwarding_of_another_controller_is_not_there():
    rows = setup_rows(setup(routes=None))
    assert not rows.keys() & {"ipv4_lpm", "ipv6_lpm", "ecmp", "ecmp_seed"}
    assert rows["edge_port"]


def test_flows_go_to_the_table_of_their_family_and_kind():
    rows = flow_rows(
        {
            FiveTuple(A4, B4, 6, 1000, 2000): FlowEntry(1, 11),
            FiveTuple(A6, B6, 17, 1000, 2000): FlowEntry(2, 12),
            FiveTuple(A4, B4, 17, 1000, 4791, 0x1234): FlowEntry(3, 13),
            FiveTuple(A6, B6, 17, 1000, 4791, 0x1235): FlowEntry(4, 14),
        }
    )
    assert rows == {
        "flow_group_v4": {(int(A4), int(B4), 6, 1000, 2000): Call("set_group", (1, 11))},
        "flow_group_v6": {(int(A6), int(B6), 17, 1000, 2000): Call("set_group", (2, 12))},
        "flow_group_qp_v4": {(int(A4), int(B4), 0x1234): Call("set_group", (3, 13))},
        "flow_group_qp_v6": {(int(A6), int(B6), 0x1235): Call("set_group", (4, 14))},
    }


def test_held_is_the_ranking_in_force_and_the_flows():
    flows = {
        FiveTuple(A4, B4, 6, 1000, 2000): FlowEntry(1, 11),
        FiveTuple(A6, B6, 17, 0, 4791, 9): FlowEntry(2, 12),
    }
    contents = {
        **flow_rows(flows),
        "active_bank": {(): Call("set_bank", (1,))},
        "group_level": {
            (0, 1): Call("set_level", (5, 0, 0)),
            (1, 1): Call("set_level", (3, 10, 20)),
            (1, 2): Call("action 77"),
        },
    }
    there = held(contents)
    assert (there.flows, there.groups, there.active_bank) == (flows, {1: GroupLevel(3, 10, 20)}, 1)
    assert bank_rows(contents, 0) == group_rows({1: GroupLevel(5)})


def test_bank_zero_is_in_force_until_it_is_set():
    assert active_bank({"active_bank": {}}) == 0
    assert active_bank({"active_bank": {(): Call("action 1")}}) == 0


def test_rows_are_made_anew_only_for_another_mapping():
    wanted = Wanted()
    flows = {FiveTuple(A4, B4, 6, 1000, 2000): FlowEntry(1, 11)}
    first = wanted.flows(flows)
    assert wanted.flows(flows) is first
    assert wanted.flows(dict(flows)) is not first
    assert wanted.flows({}) == {table: {} for table in FLOW_TABLES}
    same = setup()
    assert wanted.setup(same) is wanted.setup(same)


MIXED = {
    FiveTuple(A4, B4, 6, 1, 2): FlowEntry(1, 1),
    FiveTuple(A4, B4, 6, 3, 4): FlowEntry(1, 2),
    FiveTuple(A4, B4, 17, 5, 4791, 77): FlowEntry(1, 3),
    FiveTuple(A6, B6, 6, 1, 2): FlowEntry(2, 4),
    FiveTuple(A6, B6, 17, 5, 4791, 78): FlowEntry(2, 5),
    FiveTuple(A6, B6, 17, 6, 4791, 79): FlowEntry(2, 6),
}


def test_rows_in_parts_are_the_rows():
    whole = {table: {} for table in FLOW_TABLES}
    sizes = []
    for part in flow_rows_in_parts(MIXED, 4):
        sizes.append(sum(map(len, part.values())))
        for table, rows in part.items():
            whole[table] |= rows
    assert sizes == [4, 2]
    assert whole == flow_rows(MIXED)


def test_rows_at_most():
    """By version the 5-tuples and the queue pairs are not told apart, but no table gets more than said."""
    assert at_most(MIXED) == {
        "flow_group_v4": 3, "flow_group_v6": 3, "flow_group_qp_v4": 3, "flow_group_qp_v6": 3,
    }  # fmt: skip
    assert at_most({}) == dict.fromkeys(FLOW_TABLES, 0)
    only_tuples = {
        flow: entry for flow, entry in MIXED.items() if not flow.destination_qp and flow.source == A4
    }
    assert at_most(only_tuples) == {
        "flow_group_v4": 2, "flow_group_v6": 0, "flow_group_qp_v4": 0, "flow_group_qp_v6": 0,
    }  # fmt: skip
