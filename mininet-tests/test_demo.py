"""``leveller demo`` as a script uses it: one JSON document, nothing left behind however it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

DEMO = [sys.executable, "-P", "-m", "leveller", "demo"]


def test_json_on_stdout_and_nothing_else(kind):
    short = ["--scenario", "pair", "--policy", "fair,static", "--seconds", "6", "--warmup", "4", "--json"]
    done = subprocess.run([*DEMO, *short, "--switch", kind], capture_output=True, text=True, check=True)
    outcomes = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert [outcome["policy"] for outcome in outcomes] == ["fair", "static"]
    for outcome in outcomes:
        assert list(outcome) == ["policy", "jobs", "min_R", "avg_R"]
        assert [list(job) for job in outcome["jobs"]] == [["id", "R", "iterations"]] * 2
        assert [job["id"] for job in outcome["jobs"]] == ["job1", "job2"]
        assert all(job["iterations"] >= 1 and 0.3 < job["R"] < 1.1 for job in outcome["jobs"])
        assert outcome["min_R"] == min(job["R"] for job in outcome["jobs"])


@pytest.mark.parametrize("after_s", [0.3, 3, 10])
def test_ctrl_c_leaves_nothing(kind, after_s):
    """So long after the demo has made its namespace: Python's own start takes its time on a busy machine."""
    process = subprocess.Popen(
        [*DEMO, "--policy", "leveller", "--switch", kind],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not children.read_text():
        time.sleep(0.05)
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=20)
    assert process.returncode == 130, error
    assert "Traceback" not in error
    # This test is PID 1 of its namespace: whatever was left would be its child now, or somebody's below it.
    assert [pid for pid in os.listdir("/proc") if pid.isdigit() and pid not in ("1", str(process.pid))] == []


def test_a_port_that_is_taken_is_one_line(tmp_path):
    broken = tmp_path / "softswitch"
    broken.write_text("#!/bin/sh\necho 'error: interface s1-eth1 is taken: free it' >&2\nexit 2\n")
    broken.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([*DEMO, "--json"], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2
    assert done.stdout == ""
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("error: switch s1 did not start (error: interface s1-eth1 is taken: free it)")
