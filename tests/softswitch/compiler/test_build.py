import json

import pytest

from softswitch.compiler import compile_program
from tests.softswitch.ours import read


def test_each_pipeline_has_its_own_state(ours):
    one, other = ours("state"), ours("state")
    one.insert("flows", [1], "seen", 5)
    assert len(other.table("flows")) == 0
    assert one.pipeline.source == other.pipeline.source


def test_optional_keys_take_a_value_or_none(ours):
    switch = ours("match")
    assert [k.kind for k in switch.table("maybe").keys] == ["optional"]
    plain = compile_program(read("match", "json"))
    assert [k.kind for k in plain.tables["MyIngress.maybe"].keys] == ["ternary"]


def test_const_entries_are_there_with_their_order(ours):
    entries = list(ours("match").table("validity").entries())
    assert [e.match for e in entries] == [(1, (0x10, 0xF0)), (1, (0, 0)), (0, (0, 0xFF))]
    assert [e.priority for e in entries] == [3, 2, 1]
    assert all(e.is_const for e in entries)


def test_bytes_and_objects_are_programs_too(ours):
    text = "{" + '"__meta__": {}' + "}"
    for form in (text, text.encode(), json.loads(text)):
        with pytest.raises(ValueError, match="not a bmv2 JSON"):
            compile_program(form)
