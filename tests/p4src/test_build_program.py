"""build_program.py: what is checked in is what the sources make, and is made the same way anywhere."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from leveller.errors import UserError
from p4src import ROOT, build_program, sources

BUILD = ROOT / "build" / "v1model"
MANIFEST = json.loads((BUILD / "manifest.json").read_text())

needs_compiler = pytest.mark.skipif(
    shutil.which(build_program.COMPILER) is None, reason=f"{build_program.COMPILER} is not installed here"
)


def copy_sources(folder: Path) -> Path:
    for name in ("shared", "v1model"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


def test_manifest_and_sources_agree() -> None:
    assert MANIFEST["sources"] == sources.source_hashes("v1model"), "a source has changed: run `make p4`"
    assert MANIFEST["constants"] == sources.constants()
    assert set(MANIFEST["sources"]) >= {
        "shared/headers.p4",
        "v1model/leveller.p4",
        "v1model/level_control.p4",
    }


def test_manifest_and_outputs_agree() -> None:
    assert MANIFEST["outputs"] == {
        name: hashlib.sha256((BUILD / name).read_bytes()).hexdigest()
        for name in ("leveller.json", "leveller.p4info.txtpb")
    }


def test_a_changed_source_is_noticed(tmp_path: Path) -> None:
    root = copy_sources(tmp_path)
    assert sources.source_hashes("v1model", root) == MANIFEST["sources"]
    source = root / "v1model" / "forwarding.p4"
    source.write_text(source.read_text() + "\n")
    changed = sources.source_hashes("v1model", root)
    assert [name for name, digest in changed.items() if digest != MANIFEST["sources"][name]] == [
        "v1model/forwarding.p4"
    ]


def test_no_path_of_any_machine_is_in_the_outputs() -> None:
    for path in BUILD.iterdir():
        text = path.read_text()
        assert "source_info" not in text
        assert not re.search(r'"[^"]*(/home|/root|/tmp|/work|/usr)[^"]*"', text), path


@needs_compiler
def test_recompiling_gives_identical_files(tmp_path: Path) -> None:
    """From another folder, too: nothing in them depends on where they were made."""
    version = subprocess.run(
        [build_program.COMPILER, "--version"], capture_output=True, text=True, check=True
    )
    if MANIFEST["compiler"].split()[1] not in version.stdout + version.stderr:
        pytest.skip(f"built by {MANIFEST['compiler']}, installed is another version")
    build_program.compile_program(tmp_path / "out", copy_sources(tmp_path / "elsewhere"))
    for path in BUILD.iterdir():
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes(), path.name


@needs_compiler
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("action relay() { }", "action relay() {", "syntax error"),
        ("bit<5> words", "bit<5> idle = 0; bit<5> words", "unused"),
    ],
)
def test_errors_and_warnings_leave_the_old_build(tmp_path: Path, old: str, new: str, says: str) -> None:
    root = copy_sources(tmp_path)
    for name in ("int_sink.p4", "int_edge.p4"):
        source = root / "v1model" / name
        source.write_text(source.read_text().replace(old, new))
    with pytest.raises(UserError, match=says):
        build_program.compile_program(tmp_path / "out", root)
    assert not (tmp_path / "out").exists()


def test_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert build_program.main() == 2
    assert "p4c-bm2-ss is not on PATH: install p4c" in capsys.readouterr().err
