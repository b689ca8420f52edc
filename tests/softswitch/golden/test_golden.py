"""What bmv2 was seen to do with programs, entries and packets of the golden cases, the softswitch does."""

import json
import shutil

import pytest

from tests.softswitch.golden.compile_programs import PROGRAMS, compiled
from tests.softswitch.golden.inputs import INPUTS, inputs
from tests.softswitch.golden.replay import CASES, counted, load, step, write
from tests.softswitch.ours import Ours

NAMES = sorted(path.stem for path in CASES.glob("*.json"))


@pytest.mark.parametrize("name", NAMES)
def test_the_softswitch_does_as_bmv2_did(name):
    case = load(name)
    switch = Ours(case["program"])
    write(switch, case["writes"])
    for expected in case["packets"]:
        assert step(switch, expected["port"], bytes.fromhex(expected["packet"])) == expected
    for key, value in counted(switch).items():
        assert value == case[key], key


@pytest.mark.parametrize("name", NAMES)
def test_every_case_shows_something(name):
    """A case in which nothing is sent, or nothing depends on the packet, would prove nothing."""
    sent = {json.dumps(each["sent"]) for each in load(name)["packets"]}
    assert len(sent) >= 5


@pytest.mark.parametrize("name", sorted(INPUTS))
def test_cases_are_of_the_inputs(name):
    """``record`` makes the cases of the inputs; who changes these has to record them anew."""
    writes, packets = inputs(name)
    case = load(name)
    assert case["writes"] == json.loads(json.dumps(writes))
    assert [(each["port"], bytes.fromhex(each["packet"])) for each in case["packets"]] == packets


@pytest.mark.parametrize("source", sorted(PROGRAMS.glob("*.p4")), ids=lambda path: path.stem)
def test_the_compiled_program_is_that_of_its_source(source):
    """Made with ``python -m tests.softswitch.golden.compile_programs``."""
    if shutil.which("p4c-bm2-ss") is None:
        pytest.skip("p4c-bm2-ss is not on PATH")
    config, p4info = compiled(source)
    assert config == source.with_suffix(".json").read_text()
    assert p4info == source.with_suffix(".p4info.txtpb").read_text()
