"""build_tna.py: what is checked in belongs to the sources, and fits into the chips."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from leveller.errors import UserError
from p4src import ROOT, build_tna, sources

BUILD = ROOT / "build" / "tna"
MANIFEST = json.loads((BUILD / "manifest.json").read_text())
RESOURCES = json.loads((BUILD / "resources.json").read_text())

needs_compiler = pytest.mark.skipif(
    shutil.which(build_tna.COMPILER) is None, reason=f"{build_tna.COMPILER} is not installed here"
)


def test_the_report_belongs_to_the_sources() -> None:
    assert MANIFEST["sources"] == sources.source_hashes("tna"), "a source has changed: run `make p4`"
    assert MANIFEST["constants"] == sources.constants()
    assert "tna/level_control.p4" in MANIFEST["sources"]


def test_the_outputs_are_those_of_the_build() -> None:
    outputs = [path for path in BUILD.iterdir() if path.name != "manifest.json"]
    assert MANIFEST["outputs"] == {path.name: sources.sha256(path.read_bytes()) for path in outputs}


def test_the_program_fits() -> None:
    assert RESOURCES["tofino"]["stages"] <= 12
    assert RESOURCES["tofino2"]["stages"] <= 20
    size = MANIFEST["constants"]
    assert size["FLOWS_V4"] >= 65536
    assert size["FLOWS_V6"] >= 16384


def test_the_report_for_people_is_of_the_same_figures() -> None:
    assert (BUILD / "resources.md").read_text() == build_tna.report(RESOURCES, MANIFEST["constants"])


def test_no_path_of_any_machine_is_in_the_outputs() -> None:
    for path in BUILD.iterdir():
        assert not any(name in path.read_text() for name in ("/home/", "/root/", "/tmp/", "/usr/")), path


def stage(number: int, srams: int, tables: int) -> dict[str, object]:
    """A stage of p4c's resources.json, with nothing in it but these."""
    empty: dict[str, dict[str, list[int]]] = {group: {items: []} for group, items in build_tna.KINDS.values()}
    return {
        **empty,
        "stage_number": number,
        "rams": {"srams": list(range(srams))},
        "logical_tables": {"ids": list(range(tables))},
    }


def test_stages_are_counted_up_to_the_last_one_in_use() -> None:
    stages = [stage(13, 0, 0), stage(2, 7, 1), stage(0, 40, 3), stage(1, 0, 0)]
    phv = {
        "containers": [
            {"gress": "ingress", "bit_width": 32, "slices": [{}]},
            {"gress": "ingress", "bit_width": 8, "slices": [{}, {}]},
            {"gress": "ingress", "bit_width": 16, "slices": []},
            {"gress": "egress", "bit_width": 16, "slices": [{}]},
        ]
    }
    used = build_tna.summary({"resources": {"mau": {"mau_stages": stages}}}, phv)
    assert used["stages"] == 3
    assert used["phv_bits"] == {"ingress": 40, "egress": 16}
    assert [row["SRAM"] for row in used["per_stage"]] == [40, 0, 7]
    assert [row["logical tables"] for row in used["per_stage"]] == [3, 0, 1]


def test_a_program_that_takes_too_many_stages_is_refused() -> None:
    build_tna.check_stages("tofino", {"stages": 12})
    with pytest.raises(UserError, match="the program takes 13 stages, and tofino has 12: make a size"):
        build_tna.check_stages("tofino", {"stages": 13})
    with pytest.raises(UserError, match="takes 21 stages, and tofino2 has 20"):
        build_tna.check_stages("tofino2", {"stages": 21})


def test_a_compiler_that_loses_the_parsers_matches_is_refused() -> None:
    build_tna.check_parser(
        "    parse_ethernet:\n      match: [ half ]\n      0x0800:\n        next: check_ipv4\n"
    )
    with pytest.raises(UserError, match="p4c-barefoot loses what the parser matches on"):
        build_tna.check_parser("    parse_ethernet:\n      *:\n        next: check_ipv4\n")


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="p4c-barefoot is not on PATH"):
        build_tna.compile_tna(tmp_path / "out")
    assert not (tmp_path / "out").exists()


@needs_compiler
def test_recompiling_gives_identical_files(tmp_path: Path) -> None:
    """From another folder, too: nothing in them depends on where they were made."""
    compiler = shutil.which(build_tna.COMPILER)
    assert compiler is not None
    if MANIFEST["compiler"].split()[1] != sources.compiler_version(compiler):
        pytest.skip(f"built by {MANIFEST['compiler']}, installed is another version")
    for name in ("shared", "tna"):
        shutil.copytree(ROOT / name, tmp_path / "elsewhere" / name)
    build_tna.compile_tna(tmp_path / "out", tmp_path / "elsewhere")
    for path in BUILD.iterdir():
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes(), path.name
