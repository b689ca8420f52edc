"""The program for Tofino and the one for v1model: one contract."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import finsy
import pytest

import p4src
from controlplane.southbound.contract import CONTRACT, bind
from p4src import ROOT
from p4src.build_tna import CHIPS, COMPILER

BUILD = ROOT / "build" / "tna"


@pytest.fixture(params=CHIPS)
def tofino(request: pytest.FixtureRequest) -> finsy.P4Schema:
    return finsy.P4Schema(BUILD / f"{request.param}.p4info.txtpb")


@pytest.fixture(scope="module")
def v1model() -> finsy.P4Schema:
    return finsy.P4Schema(p4src.program("v1model").p4info)


def last(name: str) -> str:
    """An action's own name, without the controls that it is in."""
    return name.rsplit(".", 1)[-1]


def test_the_same_tables_and_keys(tofino: finsy.P4Schema, v1model: finsy.P4Schema) -> None:
    def tables(schema: finsy.P4Schema) -> dict[str, object]:
        return {
            table.alias: [(field.name, field.bitwidth, field.match_type) for field in table.match_fields]
            for table in schema.tables
        }

    assert tables(tofino) == tables(v1model)


def test_every_table_has_the_same_actions_and_parameters(
    tofino: finsy.P4Schema, v1model: finsy.P4Schema
) -> None:
    def actions(schema: finsy.P4Schema) -> dict[str, object]:
        return {
            table.alias: {
                last(action.name): [(param.name, param.bitwidth) for param in action.params]
                for action in table.actions
            }
            for table in schema.tables
        }

    assert actions(tofino) == actions(v1model)


def test_the_same_sizes(tofino: finsy.P4Schema, v1model: finsy.P4Schema) -> None:
    for table in v1model.tables:
        if len(list(table.match_fields)):
            assert tofino.tables[table.alias].size == table.size, table.alias


def test_the_same_counters(tofino: finsy.P4Schema, v1model: finsy.P4Schema) -> None:
    def counters(schema: finsy.P4Schema) -> set[object]:
        return {(counter.alias, counter.size, counter.unit) for counter in schema.counters}

    assert counters(tofino) == counters(v1model)


def test_flow_entries_count_and_time_out(tofino: finsy.P4Schema) -> None:
    for name in ("flow_group_v4", "flow_group_v6", "flow_group_qp_v4", "flow_group_qp_v6"):
        table = tofino.tables[name]
        assert table.direct_counter is not None
        assert table.direct_counter.alias == name.replace("group", "counter")
        assert table.direct_counter.unit.name == "BOTH"
        assert table.idle_timeout_behavior.name == "NOTIFY_CONTROL"


def test_the_same_registers_by_slot(tofino: finsy.P4Schema, v1model: finsy.P4Schema) -> None:
    """P4Runtime's names of the state; the clock has fewer bits here."""
    assert {register.alias: register.size for register in tofino.registers} == {
        register.alias: register.size for register in v1model.registers
    }


def test_the_same_controller_headers(tofino: finsy.P4Schema) -> None:
    """Padding aside, which this target needs in front of each port."""
    headers = tofino.controller_packet_metadata
    told = {"ingress_port": 511, "egress_port": 300, "reason": 1}
    padded = told | {"pad0": 0, "pad1": 0, "pad2": 0}
    assert headers["packet_in"].decode(headers["packet_in"].encode(padded)) == padded
    out = {"egress_port": 511, "pad": 0}
    assert headers["packet_out"].decode(headers["packet_out"].encode(out)) == out


def test_the_controller_finds_all_that_it_relies_on(tofino: finsy.P4Schema) -> None:
    binding = bind(tofino.p4info, "tofino")
    assert binding.keys() == CONTRACT.keys()
    assert [
        len(binding[name].actions["set_group"].params) for name in binding if name.startswith("flow_")
    ] == [2] * 4


def test_the_configuration_takes_it(tmp_path: Path) -> None:
    """As docs/tofino.md says: the pipeline, and the P4Info beside it by the same name."""
    (tmp_path / "leveller.bin").write_bytes(b"what bf_pipeline_builder makes")
    shutil.copy(BUILD / "tofino.p4info.txtpb", tmp_path / "leveller.p4info.txtpb")
    program = p4src.compiled(tmp_path / "leveller.bin")
    assert finsy.P4Schema(program.p4info, program.json).p4blob == b"what bf_pipeline_builder makes"
    assert program.constants["INT_DSCP"] == 0x17


@pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"{COMPILER} is not installed here")
def test_a_burst_gap_of_0_is_the_longest(tmp_path: Path) -> None:
    """As nothing runs the program here: its gap is less by one unit, modulo 2^32, before it is used."""
    chip = CHIPS["tofino"]
    command = [COMPILER, "--target", "tofino", "--arch", chip.arch, f"-D__TARGET_TOFINO__={chip.number}"]
    subprocess.run(
        [*command, "-o", tmp_path, "tna/leveller.p4"], cwd=ROOT, capture_output=True, check=True, timeout=200
    )
    assembly = Path(tmp_path, "pipe", "leveller.bfa").read_text()
    before, after = re.split(r"exact_match level_control_measure_silence \d+:", assembly)
    found = re.search(r"^  level_control_gap: \{ .*: (W\d+) \}", assembly, re.MULTILINE)
    assert found is not None
    assert before.count(f"- add {found[1]}, {0xFFFFFFFF}, {found[1]}") == 1
    assert re.search(rf"- ssubu W\d+, {found[1]}, W\d+", after)
