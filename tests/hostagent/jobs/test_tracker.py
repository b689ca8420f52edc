import os
import time

import pytest

from hostagent.jobs.identity import Rank
from hostagent.jobs.processes import ProcessFinder, TrainingProcess, own_network_namespace
from hostagent.jobs.tracker import JobTracker


class Host:
    """The real thing: a finder on /proc and a tracker."""

    def __init__(self):
        self.finder = ProcessFinder("/proc", "h1", own_network_namespace("/proc"))
        self.jobs = JobTracker("/proc")
        self.durations = {}

    def look(self):
        now = time.monotonic_ns()
        self.finder.scan(now)
        ended = self.jobs.update(self.finder.processes.values())
        for progress in self.jobs.read(now):
            self.durations.setdefault(progress.job.id, []).extend(progress.durations_ns)
        return ended

    def job(self, id_):
        self.look()
        return self.jobs.jobs.get(id_)


@pytest.fixture
def host():
    host = Host()
    yield host
    host.jobs.update(())


def test_job_with_a_log(host, trainers, eventually):
    process = trainers.start("idle", "-", 0, 5, 0.02, rank=1)
    job = eventually(lambda: (job := host.job(trainers.job)) and job.counter.iterations == 5 and job)
    assert (job.log_format, job.world_size, job.local_ranks) == ("megatron", 2, 1)
    assert host.durations[trainers.job] == [20_000_000] * 5
    assert job.started_ns < job.counter.last_ns <= time.monotonic_ns()
    process.kill()
    process.wait()
    assert job in host.look()
    assert job.id not in host.jobs.jobs


def test_ranks_of_one_job_in_one_log(host, trainers, eventually):
    trainers.start("idle", "-", 0, 3, 0.02, rank=0, world_size=4, mode="ab")
    trainers.start("idle", "-", 0, 3, 0.02, rank=1, world_size=4, mode="ab")
    trainers.start(rank=1, world_size=4, log="loader.log")  # a data loader inherits its rank
    job = eventually(lambda: (job := host.job(trainers.job)) and job.counter.iterations == 3 and job)
    assert (job.world_size, job.local_ranks) == (4, 2)
    assert len(host.durations[trainers.job]) == 3


def test_ranks_that_each_log_count_once(host, trainers, eventually):
    trainers.start("idle", "-", 0, 4, 0.02, rank=0, log="0.log")
    trainers.start("idle", "-", 0, 4, 0.02, rank=1, log="1.log")
    job = eventually(lambda: (job := host.job(trainers.job)) and job.counter.iterations == 4 and job)
    time.sleep(0.1)
    host.look()
    assert job.counter.iterations == 4
    assert len(host.durations[trainers.job]) == 4


def test_job_without_a_log_has_no_format(host, trainers, eventually):
    trainers.start()
    job = eventually(lambda: host.job(trainers.job))
    host.look()
    assert (job.log_format, job.counter.iterations) == ("", 0)


def test_two_jobs(host, trainers, eventually):
    trainers.start("idle", "-", 0, 1, 0.01, job=trainers.job + "a", log="a.log")
    trainers.start("idle", "-", 0, 2, 0.01, job=trainers.job + "b", log="b.log")
    eventually(lambda: (job := host.job(trainers.job + "a")) and job.counter.iterations == 1)
    eventually(lambda: (job := host.job(trainers.job + "b")) and job.counter.iterations == 2)


def test_what_an_earlier_run_logged_does_not_count(host, trainers, tmp_path, eventually):
    line = " iteration %8d/    1000 | elapsed time per iteration (ms): 20.0 |\n"
    (tmp_path / "train.log").write_text("".join(line % n for n in range(1, 401)))
    trainers.start("idle", "-", 0, 3, 0.1, mode="ab")
    job = eventually(lambda: (job := host.job(trainers.job)) and job.counter.last_ns and job)
    eventually(lambda: host.look() or job.counter.iterations == 3)


def test_log_that_was_there_when_the_agent_came(host, trainers, tmp_path, eventually):
    trainers.start("idle", "-", 0, 50, 0.01)
    eventually(lambda: (tmp_path / "train.log").read_bytes().count(b"\n") == 50)
    job = eventually(lambda: host.job(trainers.job))
    assert job.counter.iterations == 50


def test_the_log_goes_on_with_another_rank_when_its_writer_ends(host, trainers, eventually):
    first = trainers.start("idle", "-", 0, 3, 0.01, rank=0, log="0.log")
    job = eventually(lambda: (job := host.job(trainers.job)) and job.counter.iterations == 3 and job)
    trainers.start("idle", "-", 0, 6, 0.05, rank=1, log="1.log")
    eventually(lambda: host.look() or job.local_ranks == 2)
    first.kill()
    first.wait()
    eventually(lambda: host.look() or job.counter.iterations == 6)
    assert host.job(trainers.job) is job


def test_logs_of_helpers_that_have_gone_are_closed(host, trainers, tmp_path, eventually):
    trainers.start(rank=0)
    job = eventually(lambda: host.job(trainers.job))
    before = len(os.listdir("/proc/self/fd"))
    for number in range(3):
        helper = trainers.start(rank=0, log=f"helper{number}.log")
        eventually(lambda: host.look() or len(job._readers) == 2)
        helper.kill()
        helper.wait()
        eventually(lambda: host.look() or len(job._readers) == 1)
    assert len(os.listdir("/proc/self/fd")) == before


def test_pid_of_a_writer_that_has_gone_is_not_followed(tmp_path):
    """The same pid with another stdout, in a job of another name: as after the pids have wrapped around."""
    line = " iteration %8d/    1000 | elapsed time per iteration (ms): 20.0 |\n"
    (tmp_path / "a.log").write_text(line % 1 + line % 2)
    (tmp_path / "b.log").write_text("".join(line % n for n in range(1, 100)))
    for pid in ("7", "8"):
        (tmp_path / pid / "fd").mkdir(parents=True)
    (tmp_path / "7" / "fd" / "1").symlink_to(tmp_path / "a.log")
    jobs = JobTracker(str(tmp_path))
    seven, eight = (TrainingProcess(pid, Rank("a", pid - 7, 2), 1, 1) for pid in (7, 8))
    jobs.update([seven, eight])
    jobs.read(1)
    job = jobs.jobs["a"]
    assert job.counter.iterations == 2
    (tmp_path / "7" / "fd" / "1").unlink()
    (tmp_path / "7" / "fd" / "1").symlink_to(tmp_path / "b.log")
    jobs.update([eight, TrainingProcess(7, Rank("b", 0, 1), 2, 2)])
    jobs.read(2)
    assert job.counter.iterations == 2
    assert jobs.jobs["b"].counter.iterations == 99
    jobs.update(())


def test_rejected_lines_are_told(host, trainers, tmp_path, eventually):
    trainers.start(mode="ab")
    eventually(lambda: host.job(trainers.job))
    with (tmp_path / "train.log").open("a") as log:
        log.write(" iteration -5/ 10 | x |\n iteration nan/ 10 | x |\n" + "y" * 70_000 + "\n")
        log.write(" iteration 1/ 10 | x |\n iteration 900/ 1000 | x |\n iteration 2/ 10 | x |\n")
    job = host.job(trainers.job)
    assert job.counter.iterations == 2
    assert job.rejected() == {
        "iteration out of range": 1,
        "iteration is not a number": 1,
        "line too long": 1,
        "stray iteration": 1,
    }
