"""p4src.program, and the names that the control plane relies on."""

from __future__ import annotations

import json
from pathlib import Path

import finsy
import pytest

from leveller.errors import UserError
from p4src import compiled, program

TABLES = {
    "edge_port": {"ingress_port": 9},
    "flow_group_v4": {"src": 32, "dst": 32, "protocol": 8, "sport": 16, "dport": 16},
    "flow_group_v6": {"src": 128, "dst": 128, "protocol": 8, "sport": 16, "dport": 16},
    "flow_group_qp_v4": {"src": 32, "dst": 32, "qp": 24},
    "flow_group_qp_v6": {"src": 128, "dst": 128, "qp": 24},
    "active_bank": {},
    "group_level": {"bank": 1, "group": 16},
    "level_queue": {"level": 8},
    "default_level": {},
    "burst_gap": {},
    "ipv4_lpm": {"dst": 32},
    "ipv6_lpm": {"dst": 128},
    "ecmp": {"group": 16, "member": 16},
    "ecmp_seed": {},
    "int_node": {},
    "int_sink": {"egress_port": 9},
}
ACTIONS = {
    "host_facing": {},
    "fabric_facing": {},
    "set_group": {"group": 16, "slot": 32},
    "set_bank": {"bank": 1},
    "set_level": {"level": 8, "guard_us": 32, "slack_us": 32},
    "set_queue": {"queue": 8, "dscp": 6, "rewrite": 1},
    "set_default_level": {"level": 8, "control_level": 8},
    "set_burst_gap": {"gap_us": 32},
    "set_nhop": {"port": 9, "dmac": 48},
    "set_ecmp": {"group": 16, "count": 16},
    "drop": {},
    "set_seed": {"seed": 32},
    "set_int_node": {"node_id": 32},
    "int_off": {},
    "sink": {},
    "relay": {},
    "NoAction": {},
}
PACKET_IN = {"ingress_port": 511, "egress_port": 511, "reason": 63}
PACKET_OUT = {"egress_port": 511, "pad": 127}


@pytest.fixture
def schema() -> finsy.P4Schema:
    return finsy.P4Schema(program("v1model").p4info)


def test_tables_and_keys(schema: finsy.P4Schema) -> None:
    assert {t.alias: {f.name: f.bitwidth for f in t.match_fields} for t in schema.tables} == TABLES


def test_actions_and_parameters(schema: finsy.P4Schema) -> None:
    assert {a.alias: {p.name: p.bitwidth for p in a.params} for a in schema.actions} == ACTIONS


def test_sizes(schema: finsy.P4Schema) -> None:
    size = program("v1model").constants
    assert schema.tables["flow_group_v4"].size == size["FLOWS_V4"] == 65536
    assert schema.tables["flow_group_v6"].size == size["FLOWS_V6"] == 16384
    assert schema.tables["group_level"].size == 2 * size["GROUPS"] == 65536
    assert schema.tables["ipv4_lpm"].size == schema.tables["ipv6_lpm"].size == 1024
    assert schema.counters["burst_count"].size == size["FLOW_SLOTS"] == size["FLOWS_V4"] + size["FLOWS_V6"]
    assert {r.alias: r.size for r in schema.registers} == dict.fromkeys(
        ("last_seen", "burst_start", "level_in_force"), size["FLOW_SLOTS"]
    )


def test_counters(schema: finsy.P4Schema) -> None:
    assert {c.alias for c in schema.counters} == {
        "edge_drop",
        "int_sunk",
        "burst_count",
        "ingress_port_counter",
        "egress_port_counter",
    }
    for table in ("flow_group_v4", "flow_group_v6", "flow_group_qp_v4", "flow_group_qp_v6"):
        counter = schema.tables[table].direct_counter
        assert counter is not None
        assert counter.alias == table.replace("group", "counter")
        assert schema.tables[table].idle_timeout_behavior.name == "NOTIFY_CONTROL"


def test_controller_headers(schema: finsy.P4Schema) -> None:
    headers = schema.controller_packet_metadata
    assert headers["packet_in"].decode(headers["packet_in"].encode(PACKET_IN)) == PACKET_IN
    assert headers["packet_out"].decode(headers["packet_out"].encode(PACKET_OUT)) == PACKET_OUT


def test_constants() -> None:
    constants = program("v1model").constants
    assert (constants["INT_DSCP"], constants["CPU_PORT"], constants["REASON_INT_PROBE"]) == (0x17, 510, 1)


def test_json_is_what_a_switch_loads() -> None:
    config = json.loads(program("v1model").json.read_text())
    assert {pipeline["name"] for pipeline in config["pipelines"]} == {"ingress", "egress"}


def test_unknown_target() -> None:
    with pytest.raises(UserError, match="no compiled P4 program for target 'tna2'"):
        program("tna2")


def test_a_program_of_ones_own_has_its_p4info_beside_it(tmp_path: Path) -> None:
    own = program("l2")
    assert compiled(own.json).p4info == own.p4info
    assert compiled(own.json).constants == own.constants
    assert [p.has_table("mac") for p in (own, program("v1model"))] == [True, False]
    with pytest.raises(UserError, match=r"there is no .*/mine.json"):
        compiled(tmp_path / "mine.json")
