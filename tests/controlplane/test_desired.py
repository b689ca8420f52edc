"""What each switch should hold."""

from ipaddress import ip_address, ip_network

import pytest

import p4src
from controlplane.config import Config
from controlplane.desired import Builder, setups
from controlplane.groups import GroupTable
from controlplane.model import FiveTuple, Link
from controlplane.southbound import Desired, FlowEntry, GroupLevel, LevelQueue, NextHop

TCP = FiveTuple(ip_address("10.0.1.1"), ip_address("10.0.2.1"), 6, 40000, 5000)
ROCE = FiveTuple(ip_address("10.0.1.1"), ip_address("10.0.2.1"), 17, 40000, 4791, 9)
ACROSS, LOCAL = (Link("S1", 3), Link("S2", 1)), (Link("S1", 1),)


def switch(number, **more):
    return {
        "name": f"S{number}", "address": f"h:{number}", "device_id": number, "node_id": number,
        "ports": [1, 2, 3], "host_ports": [1, 2], **more,
    }  # fmt: skip


@pytest.fixture
def config():
    route = {"prefix": "10.0.1.0/24", "next_hops": [{"port": 1, "mac": "02:00:00:00:00:01"}]}
    return Config.model_validate(
        {
            "levels": {"count": 2, "queues": [0, 3], "dscp": [8, 16], "guard_us": 5, "guard_roce_us": 50,
                       "slack_us": 9, "burst_gap_us": 70, "default": 1},
            "switches": [switch(1, routes=[route], ecmp_seed=4), switch(2)],
        }
    )  # fmt: skip


def test_the_setup_is_the_configurations(config):
    setup = setups(config)["S1"]
    assert setup.level_queue == {0: LevelQueue(0, 8), 1: LevelQueue(3, 16), 2: LevelQueue(7, None)}
    assert (setup.default_level, setup.control_level, setup.burst_gap_us, setup.node_id) == (1, 2, 70, 1)
    assert (setup.host_ports, setup.fabric_ports, setup.ecmp_seed) == ({1, 2}, {3}, 4)
    assert setup.routes == {ip_network("10.0.1.0/24"): (NextHop(1, "02:00:00:00:00:01"),)}


def test_without_routes_a_role_leaves_forwarding_to_the_other_controller():
    config = Config.model_validate({"switches": [switch(1, role="levels"), switch(2)]})
    assert setups(config)["S1"].routes is None
    assert setups(config)["S2"].routes == {}


def test_a_pipeline_of_ones_own_has_no_routes_where_it_has_no_tables_for_them():
    config = Config.model_validate(
        {"controller": {"program": str(p4src.program("l2").json)}, "switches": [switch(1)]}
    )
    assert setups(config)["S1"].routes is None


def test_a_flow_is_only_on_the_switches_of_its_path_and_a_level_is_its_egress_links(config):
    placement = GroupTable(9, 9, 0).place({TCP: ("a", ACROSS), ROCE: ("b", LOCAL)}, 0)
    levels = {"1": {ACROSS[0]: 1, ACROSS[1]: 0}, "2": {LOCAL[0]: 0}}
    desired = Builder(config).build(placement, levels)
    assert desired["S1"].flows == {TCP: FlowEntry(1, 1), ROCE: FlowEntry(2, 2)}
    assert desired["S2"].flows == {TCP: FlowEntry(1, 1)}
    assert desired["S1"].groups == {1: GroupLevel(1, 5, 9), 2: GroupLevel(0, 50, 9)}
    assert desired["S2"].groups == {1: GroupLevel(0, 5, 9)}


def test_what_does_not_change_stays_the_same_object(config):
    placement = GroupTable(9, 9, 0).place({TCP: ("a", ACROSS)}, 0)
    builder = Builder(config)
    first = builder.build(placement, {"1": {ACROSS[0]: 1, ACROSS[1]: 0}})
    second = builder.build(placement, {"1": {ACROSS[0]: 0, ACROSS[1]: 0}})
    assert second["S1"].flows is first["S1"].flows
    assert second["S1"].groups == {1: GroupLevel(0, 5, 9)}
    assert second["S2"].groups is first["S2"].groups
    assert second["S2"] == first["S2"]


def test_a_jobs_measured_slack_is_its_groups():
    config = Config.model_validate(
        {
            "levels": {"count": 2, "slack_us": "measured", "burst_gap_us": 20_000},
            "switches": [switch(1), switch(2)],
        }
    )
    placement = GroupTable(9, 9, 0).place({TCP: ("a", ACROSS), ROCE: ("b", LOCAL)}, 0)
    levels, builder = {"1": {ACROSS[0]: 1, ACROSS[1]: 0}, "2": {LOCAL[0]: 0}}, Builder(config)
    assert builder.build(placement, levels)["S1"].groups == {1: GroupLevel(1), 2: GroupLevel(0, 500)}
    slack = {"a": 40_000}
    desired = builder.build(placement, levels, slack)
    assert desired["S1"].groups == {1: GroupLevel(1, 0, 40_000), 2: GroupLevel(0, 500)}
    assert desired["S2"].groups == {1: GroupLevel(0, 0, 40_000)}
    assert builder.build(placement, levels, {"a": 40_000})["S1"].groups is desired["S1"].groups
    assert builder.build(placement, levels, {})["S1"].groups[1] == GroupLevel(1)


def test_untouched_leaves_flows_and_ranking(config):
    assert Builder(config).untouched() == {name: Desired(setup) for name, setup in setups(config).items()}


def test_probes_from_a_switch_that_adds_no_hops_must_have_none():
    cable = {"port": 3, "peer": "S1", "peer_port": 3}
    leaf = {**switch(2), "protocol": "openflow", "cables": [cable]}
    del leaf["address"]
    found = setups(Config.model_validate({"switches": [switch(1), leaf]}))
    assert (found["S1"].host_ports, found["S1"].fabric_ports, found["S1"].guarded_ports) == (
        {1, 2},
        set(),
        {3},
    )
    assert (found["S2"].host_ports, found["S2"].fabric_ports, found["S2"].guarded_ports) == (
        {1, 2},
        {3},
        set(),
    )
