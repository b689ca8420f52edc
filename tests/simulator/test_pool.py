import os
import signal
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


@pytest.fixture
def busy_sweep(path, tmp_path):
    """A sweep on two workers that has written runs, and its workers; runs take longer than the test waits."""
    out = tmp_path / "out.jsonl"
    path.write_text(path.read_text().replace("horizon_s = 40", "horizon_s = 9000"))
    options = ["--workers", "2", "--seeds", "500", "--policy", "fair,leveller", "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "leveller", "sim", "sweep", str(path), *options],
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 60
    while not (out.exists() and out.read_text().count("\n") > 1):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    workers = psutil.Process(process.pid).children(recursive=True)
    assert len(workers) >= 2
    yield process, workers
    process.kill()
    process.wait()


def test_workers_of_a_sweep_that_was_killed_end(busy_sweep):
    process, workers = busy_sweep
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert alive == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_sweep_that_is_interrupted_ends_at_once_without_a_word(busy_sweep, number, code):
    process, workers = busy_sweep
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (code, b"")
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert alive == []
