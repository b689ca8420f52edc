import subprocess
import sys
import time

import psutil
import pytest

from leveller.errors import UserError
from simulator.pool import on_cores


def test_the_number_of_workers_does_not_matter(run_sweep, tmp_path):
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    assert run_sweep(one, runner=on_cores(1)) == run_sweep(two, runner=on_cores(2))
    assert one.read_bytes() == two.read_bytes()


def test_what_a_run_refuses_comes_through_as_it_is(run_sweep):
    with pytest.raises(UserError, match="there is no policy 'magic': choose one of"):
        run_sweep(policies=["magic"], runner=on_cores(2))


def test_workers_of_a_sweep_that_was_killed_end(path, tmp_path):
    out = tmp_path / "out.jsonl"
    command = [
        sys.executable,
        "-m",
        "leveller",
        "sim",
        "sweep",
        str(path),
        "--workers",
        "2",
        "--seeds",
        "500",
    ]
    process = subprocess.Popen([*command, "--policy", "fair,leveller", "--out", str(out)])
    parent = psutil.Process(process.pid)
    deadline = time.monotonic() + 60
    while not (out.exists() and out.read_text().count("\n") > 1):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    workers = parent.children(recursive=True)
    assert len(workers) >= 2
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert alive == []
