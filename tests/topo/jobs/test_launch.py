import dataclasses
import re
import subprocess
import time

import pytest

from leveller.errors import UserError
from topo.jobs.launch import FIRST_PORT, PORTS_PER_JOB, JobSpec, launch


def spec(log="megatron", addresses=("127.0.0.1", "127.0.0.2")):
    return JobSpec("job7", 50, ["h1", "h2"], addresses, 0.01, 1000, log)


def here(host, argv, **options):
    return subprocess.Popen(argv, **options)


def test_ranks_have_torchruns_environment(tmp_path):
    seen = []

    def execute(host, argv, **options):
        seen.append((host, options["env"]))
        return subprocess.Popen(["true"])

    job = launch(spec(), 0, tmp_path, execute)
    job.stop()
    assert [host for host, _ in seen] == ["h1", "h2"]
    for rank, (_, environment) in enumerate(seen):
        assert environment["RANK"] == str(rank)
        assert environment["WORLD_SIZE"] == "2"
        assert environment["LOCAL_RANK"] == "0"
        assert environment["MASTER_ADDR"] == "127.0.0.1"
        assert environment["MASTER_PORT"] == str(FIRST_PORT + 50 * PORTS_PER_JOB)
        assert environment["TORCHELASTIC_RUN_ID"] == "job7"
        assert environment["LEVELLER_SLOTS"] == str(tmp_path / "job7.slots")
    assert not job.slots.exists()
    job.keep_to(1700000000.25, 1.5)
    assert job.slots.read_text() == "1700000000.25 1.5\n"


@pytest.mark.parametrize(("log", "rank"), [("megatron", 1), ("nanogpt", 0)])
def test_a_job_runs_logs_and_stops(tmp_path, log, rank):
    job = launch(spec(log), time.time() + 0.3, tmp_path, here)
    assert job.log == tmp_path / f"job7-rank{rank}.log"
    deadline = time.monotonic() + 15
    while job.log.read_text().count("\n") < 3:
        job.check()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    job.stop()
    assert job.processes[0].returncode == 0


def test_a_job_may_lie(tmp_path):
    job = launch(dataclasses.replace(spec(), honest=2), time.time() + 0.3, tmp_path, here)
    deadline = time.monotonic() + 15
    while len(numbers := re.findall(r"iteration +(\d+)/", job.log.read_text())) < 5:
        job.check()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    times = [float(ms) for ms in re.findall(r"iteration \(ms\): ([\d.]+)", job.log.read_text())]
    job.stop()
    assert numbers[:5] == ["1", "2", "3", "4", "5"]
    assert min(times) >= 10


def test_a_rank_that_ends_is_reported_with_its_last_words(tmp_path):
    job = launch(spec(addresses=("192.0.2.1", "192.0.2.2")), time.time(), tmp_path, here)
    try:
        job.processes[0].wait(10)
        with pytest.raises(UserError, match=r"rank 0 of job7 ended with code 1 .*the ring broke"):
            job.check()
    finally:
        job.stop()
