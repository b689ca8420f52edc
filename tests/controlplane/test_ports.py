import p4src
from controlplane.ports import overlooked, reserved
from tests.controlplane.southbound.helpers import PROGRAM

V1MODEL = {510: "is the controller's", 511: "means that a packet is dropped"}


def tofino(chip, tmp_path):
    """Return the program for ``chip``, as docs/tofino.md has it made."""
    config = tmp_path / "out.bin"
    config.touch()
    info = p4src.ROOT / "build" / "tna" / f"{chip}.p4info.txtpb"
    config.with_suffix(".p4info.txtpb").write_text(info.read_text())
    return p4src.compiled(config)


def test_v1model():
    assert reserved(PROGRAM) == V1MODEL
    assert overlooked(PROGRAM) == {0, 510, 511}


def test_tofino_has_four_pipes_of_72_ports_of_which_four_lead_back(tmp_path):
    there = set(range(512)) - reserved(tofino("tofino", tmp_path)).keys()
    assert len(there) == 4 * 68
    assert {0, 67, 128, 192, 320, 384, 451} <= there
    assert not {68, 71, 72, 127, 196, 324, 452, 511} & there


def test_tofino_2(tmp_path):
    there = set(range(512)) - reserved(tofino("tofino2", tmp_path)).keys()
    assert {8, 71, 136, 199, 264, 392} <= there
    assert not {0, 6, 72, 128, 256, 384, 511} & there


def test_what_the_controller_sends_and_gets_is_no_port_that_somebody_forgot(tmp_path):
    assert {192, 320} <= overlooked(tofino("tofino", tmp_path))
    assert 0 not in overlooked(tofino("tofino", tmp_path))
    assert 0 in overlooked(tofino("tofino2", tmp_path))


def test_an_architecture_that_is_not_known_has_them_all(tmp_path):
    program = tofino("tofino", tmp_path)
    program.p4info.write_text(program.p4info.read_text().replace('arch: "tna"', 'arch: "psa"'))
    assert reserved(program) == {}
