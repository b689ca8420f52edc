import json
import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize("name", sorted(p.stem for p in PROGRAMS.glob("*.p4")))
def test_the_compiled_program_is_that_of_its_source(name, tmp_path):
    """Made in that folder with: p4c-bm2-ss --p4runtime-files X.p4info.txtpb -o X.json X.p4."""
    if shutil.which("p4c-bm2-ss") is None:
        pytest.skip("p4c-bm2-ss is not on PATH")
    fresh, info = tmp_path / "fresh.json", tmp_path / "fresh.txtpb"
    command = ["p4c-bm2-ss", "--p4runtime-files", info, "-o", fresh, f"{name}.p4"]
    subprocess.run(command, cwd=PROGRAMS, check=True, capture_output=True)
    checked_in = json.loads((PROGRAMS / f"{name}.json").read_text())
    compiled = json.loads(fresh.read_text())
    for program in (checked_in, compiled):
        del program["__meta__"]
    assert compiled == checked_in
    assert info.read_text() == (PROGRAMS / f"{name}.p4info.txtpb").read_text()
