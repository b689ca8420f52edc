import json
from pathlib import Path

import pytest

from softswitch.compiler import Unsupported, compile_program

PROGRAMS = Path(__file__).parent.parent / "programs"


def program(name):
    return json.loads((PROGRAMS / f"{name}.json").read_text())


def refused(json):
    with pytest.raises(Unsupported) as error:
        compile_program(json)
    return error.value.constructs


def test_what_a_stack_of_header_unions_would_have_next_is_refused_by_name():
    what = "next of header union stack either in parser state"
    assert sorted(refused(program("union"))) == [f"{what} parse_long", f"{what} parse_short"]


def test_everything_refused_is_listed_with_its_place():
    broken = program("state")
    steps = [p for a in broken["actions"] for p in a["primitives"]]
    next(p for p in steps if p["op"] == "modify_field_rng_uniform")["op"] = "roll_dice"
    next(p for p in steps if p["op"] == "register_write")["op"] = "forget"
    constructs = refused(broken)
    assert any(c.startswith("primitive roll_dice (state.p4 line ") for c in constructs)
    assert any(c.startswith("primitive forget (state.p4 line ") for c in constructs)
    assert len(constructs) == 2


def test_an_unknown_hash_is_refused():
    broken = program("hashes")
    broken["calculations"][-1]["algo"] = "sha256"
    assert [c.split(" (")[0].split(" in ")[0] for c in refused(broken)] == ["hash algorithm sha256"]


@pytest.mark.parametrize("text", ["[]", "{}", '{"pipelines": []}', "{"])
def test_what_is_no_program_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"bmv2 JSON|Expecting"):
        compile_program(text)


EVIL = "x\nraise SystemExit  #"


def replaced(json, old, new):
    if isinstance(json, dict):
        return {new if k == old else k: replaced(v, old, new) for k, v in json.items()}
    if isinstance(json, list):
        return [replaced(v, old, new) for v in json]
    return new if json == old else json


@pytest.mark.parametrize(
    ("name", "old"),
    [
        ("parse", "parse_label"),
        ("parse", "ethernet"),
        ("match", "MyIngress.longest"),
        ("match", "MyIngress.mark"),
        ("copies", "report_t"),
        ("state", "MyIngress.arrivals"),
        ("state", "flow {} has {}"),
    ],
)
def test_names_never_become_code(name, old):
    hostile = replaced(program(name), old, EVIL)
    assert hostile != program(name)
    try:
        source = compile_program(hostile).source
    except (ValueError, Unsupported):
        return
    assert not any(line.lstrip().startswith("raise SystemExit") for line in source.splitlines())


@pytest.mark.parametrize("key", ["id", "size", "bitwidth", "max_size", "compressed_bitwidth"])
def test_numbers_must_be_numbers(key):
    def spoil(json):
        if isinstance(json, dict):
            return {k: EVIL if k == key and v in (1, 8, 16, 32) else spoil(v) for k, v in json.items()}
        return [spoil(v) for v in json] if isinstance(json, list) else json

    for name in ("state", "parse", "copies"):
        hostile = spoil(program(name))
        if hostile != program(name):
            with pytest.raises(ValueError, match="not a bmv2 JSON"):
                compile_program(hostile)


def test_names_are_those_of_p4info():
    pipeline = compile_program(program("state"))
    assert "MyIngress.arrivals" in pipeline.counters
    assert "MyIngress.policer" in pipeline.meters
    assert "MyIngress.cells" in pipeline.registers
    assert {"MyIngress.spread", "MyIngress.shared_actions"} == pipeline.action_profiles.keys()
    table = pipeline.tables["MyIngress.flows"]
    assert (table.direct_counter, table.direct_meter) == ("MyIngress.flow_counter", "MyIngress.flow_meter")
    assert table.idle_timeout
    assert [(k.name, k.kind, k.width) for k in table.keys] == [("hdr.data.flow", "exact", 8)]
