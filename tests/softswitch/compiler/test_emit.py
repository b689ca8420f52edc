import json
from pathlib import Path

import pytest

from softswitch.compiler.emit import Emitter
from softswitch.compiler.expr import Const, Element, Field, Last, Op
from softswitch.compiler.reader import read_program
from softswitch.compiler.usage import Usage

PROGRAMS = Path(__file__).parent.parent / "programs"


@pytest.fixture
def emitter():
    program = read_program(json.loads((PROGRAMS / "parse.json").read_text()))
    return Emitter(program, Usage(program))


def test_names_are_identifiers_and_never_shared(emitter):
    names = [
        emitter.name("h", *parts) for parts in [("a.b", "c"), ("a", "b.c"), ("a_b", "c"), ("a[1]",), ("a_1",)]
    ]
    assert len(set(names)) == len(names)
    assert all(n.isidentifier() for n in names)
    assert emitter.name("h", "a.b", "c") == names[0]


def test_fields_are_masked_when_stored_and_unused_ones_dropped(emitter):
    (line,) = emitter.store(Field("gap", "size"), emitter.value(Op("+", Field("gap", "size"), Const(300))))
    assert line == "h_gap_size = (h_gap_size + 300) & 255"
    assert emitter.store(Field("standard_metadata", "egress_rid"), emitter.value(Const(1))) == []


def test_a_computed_stack_index_chooses_at_run_time(emitter):
    code = emitter.value(Last("labels", "ttl")).code
    values = {f"h_labels_{i}_ttl": 10 + i for i in range(3)}
    assert [eval(code, {**values, "i_labels": n}) for n in range(5)] == [0, 10, 11, 12, 0]
    lines = emitter.assign(Last("labels", "ttl"), emitter.value(Const(99)))
    scope = {**values, "i_labels": 2}
    exec("\n".join(lines), scope)
    assert [scope[f"h_labels_{i}_ttl"] for i in range(3)] == [10, 99, 12]


def test_what_cannot_be_generated_is_refused_with_its_place(emitter):
    emitter.where = " (x.p4 line 7)"
    emitter.value(Element("labels", Const(0)))
    emitter.value(Op("roll", None, Const(1)))
    assert emitter.program.refused == ["Element as a value (x.p4 line 7)", "operator roll (x.p4 line 7)"]
