"""The tests of tables, incidence, merging and pruning again, with compiled loops, in their own process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = [
    Path(__file__).with_name(f"test_{name}.py") for name in ("tables", "incidence", "merging", "pruning")
]


@pytest.mark.timeout(600)
def test_compiled_loops_pass_the_same_tests():
    pytest.importorskip("numba", reason="numba is not installed: the loops are plain Python")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error::RuntimeWarning", *TESTS],
        env=os.environ | {"NUMBA_DISABLE_JIT": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
