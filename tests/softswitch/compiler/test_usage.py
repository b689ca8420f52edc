import json
from pathlib import Path

from softswitch.compiler.expr import Field
from softswitch.compiler.reader import read_program
from softswitch.compiler.usage import Usage, covers_header

PROGRAMS = Path(__file__).parent.parent / "programs"


def program(name):
    return read_program(json.loads((PROGRAMS / f"{name}.json").read_text()))


def test_only_fields_that_code_touches_become_variables():
    p = program("parse")
    usage = Usage(p)
    assert usage.use("ethernet").tracked == {"type"}
    assert "src" not in usage.use("gap").tracked
    assert not usage.is_variable(Field("standard_metadata", "egress_rid"))


def test_headers_of_a_stack_are_of_one_class():
    usage = Usage(program("parse"))
    assert usage.siblings("labels[0]") == {"labels[0]", "labels[1]", "labels[2]"}
    assert usage.use("labels[2]").created
    assert usage.use("labels[2]").tracked == {"label", "tc", "bottom", "ttl"}


def test_headers_copied_to_one_another_are_of_one_class():
    assert Usage(program("arith")).siblings("copy") == {"copy", "values"}


def test_a_field_that_is_only_written_is_lazy():
    usage = Usage(program("copies"))
    assert usage.use("todo").lazy == set()  # the tag is read before it is written
    leveller = Path(__file__).parent.parent.parent.parent / "p4src" / "build" / "v1model" / "leveller.json"
    usage = Usage(read_program(json.loads(leveller.read_text())))
    assert usage.use("ethernet").lazy == {"src_addr"}


def test_a_checksum_over_its_whole_header_is_recognised():
    p = program("hashes")
    whole = [c.target for c in p.checksums if covers_header(p, c.target, p.calculations[c.calculation])]
    assert set(whole) == {Field("ipv4", "checksum")}
