"""sources.py: what a build depends on."""

from __future__ import annotations

import re
from pathlib import Path

from p4src import ROOT, sources


def test_constants_are_read_as_the_sources_write_them(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "constants.p4").write_text("const bit<6> A = 0x17;  // b\nbit<8> no = 1;\n")
    (tmp_path / "shared" / "sizes.p4").write_text("const bit<32> B = 65536;\n")
    assert sources.constants(tmp_path) == {"A": 23, "B": 65536}
    text = "".join((ROOT / "shared" / name).read_text() for name in ("constants.p4", "sizes.p4"))
    assert len(sources.constants()) == len(re.findall(r"^const ", text, re.MULTILINE))


def test_a_target_depends_on_its_own_and_the_shared_sources(tmp_path: Path) -> None:
    for name in ("shared/a.p4", "tna/b.p4", "v1model/c.p4"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("abc")
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, B.1
    assert sources.source_hashes("tna", tmp_path) == {"shared/a.p4": digest, "tna/b.p4": digest}


def test_the_version_is_what_the_compiler_says(tmp_path: Path) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\necho some-p4c\necho 'Version 1.2.5.16 (SHA: abc)' >&2\n")
    compiler.chmod(0o755)
    assert sources.compiler_version(str(compiler)) == "1.2.5.16"
