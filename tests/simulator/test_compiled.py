"""The compiled inner loops do what the plain ones do. They are compiled in a process of their own."""

import json
import os
import subprocess
import sys

import pytest

SCENARIO = """
horizon_s = 60
placement = "random"
[fabric]
kind = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 4
[policy]
tau_s = 1
scope = "{scope}"
levels = 4
[workload]
jobs = 12
gpus = [8, 16, 32]
iterations = [5, 20]
all_to_all = 0.3
jitter = 0.2
"""


@pytest.mark.timeout(300)
def test_compiled_equals_plain(tmp_path):
    pytest.importorskip("numba", reason="numba is not installed: the inner loops are plain Python")
    for scope, policy in (
        ("fabric", "leveller"),
        ("port", "leveller"),
        ("fabric", "crux"),
        ("fabric", "cassini"),
    ):
        path = tmp_path / f"{scope}.toml"
        path.write_text(SCENARIO.format(scope=scope))
        compiled, plain = (
            json.loads(
                subprocess.run(
                    [sys.executable, "-m", "leveller", "sim", str(path), "--policy", policy, "--json"],
                    env=os.environ | {"NUMBA_DISABLE_JIT": off},
                    capture_output=True,
                    check=True,
                ).stdout
            )
            for off in ("0", "1")
        )
        assert compiled["jobs"] == plain["jobs"]
        assert compiled["events"] == plain["events"]
        assert len(plain["jobs"]) > 5
