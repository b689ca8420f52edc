"""Realizing a forwarding-pipeline config: what comes out, and configs that are refused whole."""

import json

import pytest
from finsy.proto import p4r
from google.protobuf import text_format

from p4src import program as compiled
from softswitch.p4runtime.program import realize
from tests.softswitch.p4runtime.helpers import load, refusal


@pytest.fixture
def config():
    """features.p4's config, to be changed."""
    return load("features")


def test_it_has_the_config_the_tables_and_no_state(program, features):
    assert program.config == features
    assert {"ingress.mac", "ingress.acl", "ingress.spread"} <= program.pipeline.tables.keys()
    assert (program.multicast, program.clones, program.digests) == ({}, {}, {})
    assert program.pipeline.queues == 8


def test_optional_keys_are_told_apart_from_ternary_ones(program, features):
    ingress = json.loads(features.p4_device_config)["pipelines"][0]
    acl = next(table for table in ingress["tables"] if table["name"] == "ingress.acl")
    assert [key["match_type"] for key in acl["key"]] == ["ternary", "ternary", "range", "exact"]
    keys = program.pipeline.tables["ingress.acl"].keys
    assert [key.kind for key in keys] == ["ternary", "optional", "range", "exact"]


def test_p4infos_limit_of_a_group_is_the_profiles(config):
    for profile in config.p4info.action_profiles:
        profile.max_group_size = 5 if profile.with_selector else 0
    profiles = realize(config, 8).pipeline.action_profiles
    assert profiles["ingress.spreader"].max_group_size == 5
    assert profiles["ingress.nexts"].max_group_size == 0


def test_levellers_own_program():
    files = compiled("v1model")
    config = p4r.ForwardingPipelineConfig(p4_device_config=files.json.read_bytes())
    text_format.Parse(files.p4info.read_text(), config.p4info)
    program = realize(config, 8)
    alias = {table.name.rpartition(".")[2]: table for table in program.info.tables.values()}
    assert [(key.kind, key.width) for key in alias["flow_group_v4"].fields] == [
        ("exact", 32),
        ("exact", 32),
        ("exact", 8),
        ("exact", 16),
        ("exact", 16),
    ]
    assert sorted(program.info.headers) == ["packet_in", "packet_out"]


@pytest.mark.parametrize("part", ["p4info", "p4_device_config"])
def test_both_parts_are_needed(config, part):
    config.ClearField(part)
    assert refusal(realize, config, 8) == (
        "INVALID_ARGUMENT",
        "the config must have both p4info and p4_device_config (the JSON that p4c writes)",
    )


@pytest.mark.parametrize("data", [b"no json", b"[1]", b"{}", b"\xff\xfe", b"[" * 100_000])
def test_what_p4c_did_not_write_is_refused(config, data):
    config.p4_device_config = data
    code, message = refusal(realize, config, 8)
    assert code == "INVALID_ARGUMENT"
    assert message.startswith("p4_device_config is not a program that p4c wrote for v1model: ")


def test_constructs_this_switch_lacks_are_named(config):
    program = json.loads(config.p4_device_config)
    program["extern_instances"].append(
        {"name": "ingress.thing", "id": 99, "type": "Widget", "attribute_values": []}
    )
    config.p4_device_config = json.dumps(program).encode()
    code, message = refusal(realize, config, 8)
    assert code == "INVALID_ARGUMENT"
    assert message.startswith("the program cannot run here: ")
    assert "Widget" in message


def test_p4info_of_another_program_is_refused(config):
    next(iter(config.p4info.tables)).preamble.name = "ingress.other"
    assert refusal(realize, config, 8) == (
        "INVALID_ARGUMENT",
        "P4Info and program do not belong together: table ingress.other is not in the program as described",
    )
