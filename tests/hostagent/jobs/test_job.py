"""One job and its logs; how jobs come and go is tested with the tracker."""

import os
from dataclasses import replace

import pytest

from hostagent.jobs.identity import Rank
from hostagent.jobs.job import MAX_LOGS, TrackedJob
from hostagent.jobs.processes import TrainingProcess

LINE = " iteration %8d/    1000 | elapsed time per iteration (ms): 20.0 |\n"
BARE = " 50%%|█ | %d/500 [00:01<00:01, 2.00it/s]\n"
S = 10**9


@pytest.fixture
def proc(tmp_path):
    """A proc file system in which a process's descriptors are links, and open for writing."""
    proc = tmp_path / "proc"

    def process(pid, stdout=None, stderr=None, rank=0):
        directory = proc / str(pid) / "fd"
        directory.mkdir(parents=True)
        for number, path in (("1", stdout), ("2", stderr)):
            if path is not None:
                (directory / number).symlink_to(path)
                (proc / str(pid) / "fdinfo").mkdir(exist_ok=True)
                (proc / str(pid) / "fdinfo" / number).write_text("pos:\t0\nflags:\t0100001\n")
        return TrainingProcess(pid, Rank("a", rank, 4), 1, 1)

    process.path = str(proc)
    return process


@pytest.fixture
def job():
    job = TrackedJob("a", 1)
    yield job
    job.close()


def test_stdout_and_stderr_in_one_file_are_one_log(job, proc, tmp_path):
    (tmp_path / "log").write_text(LINE % 1 + LINE % 2)
    job.update([proc(7, tmp_path / "log", tmp_path / "log"), proc(8, tmp_path / "log", rank=1)])
    job.follow_outputs(proc.path, None)
    job.read(S)
    assert (job.source, job.log_format, job.counter.iterations) == ("stdout", "megatron", 2)
    assert (job.world_size, job.local_ranks, len(job._logs)) == (4, 2, 1)


def test_the_log_that_shows_iterations_counts(job, proc, tmp_path):
    (tmp_path / "out").write_text("hello\n")
    (tmp_path / "err").write_text(LINE % 1)
    job.update([proc(7, tmp_path / "out", tmp_path / "err")])
    job.follow_outputs(proc.path, None)
    assert job.source == "stdout"  # it may be yet
    job.read(S)
    assert (job.source, job.counter.iterations) == ("stderr", 1)


def test_a_trainings_log_takes_the_place_of_anybodys_bar(job, proc, tmp_path):
    (tmp_path / "out").write_text("hello\n")
    (tmp_path / "err").write_text(BARE % 499 + BARE % 500)
    job.update([proc(7, tmp_path / "out", tmp_path / "err")])
    job.follow_outputs(proc.path, None)
    job.read(S)
    assert (job.log_format, job.counter.value) == ("huggingface", 500)
    with (tmp_path / "out").open("a") as out, (tmp_path / "err").open("a") as err:
        out.write(LINE % 1 + LINE % 2)
        err.write(BARE % 1)
    job.read(2 * S)
    assert (job.source, job.log_format, job.counter.iterations) == ("stdout", "megatron", 2)
    with (tmp_path / "err").open("a") as err:
        err.write(BARE % 2)
    job.read(3 * S)
    assert job.counter.iterations == 2


def test_the_logs_of_one_job_are_bounded(job, proc, tmp_path):
    members = []
    for number in range(2 * MAX_LOGS):
        (tmp_path / str(number)).write_text("hello\n")
        members.append(proc(100 + number, tmp_path / str(number)))
    before = len(os.listdir("/proc/self/fd"))
    job.update(members)
    job.follow_outputs(proc.path, None)
    job.read(S)
    assert len(os.listdir("/proc/self/fd")) == before + MAX_LOGS
    job.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_search_is_asked_for_less_and_less_often(job, proc):
    job.update([proc(7)])
    job.follow_outputs(proc.path, None)
    asked = [second for second in range(1, 400) if job.wants_search(second * S)]
    assert asked == [1, 3, 7, 15, 31, 63, 123, 183, 243, 303, 363]


def test_own_outputs_are_given_time_before_a_search(job, proc, tmp_path):
    (tmp_path / "log").write_text("hello\n")
    job.update([proc(7, tmp_path / "log")])
    job.follow_outputs(proc.path, None)
    assert [second for second in range(1, 20) if job.wants_search(second * S)] == [11, 13, 17]
    with (tmp_path / "log").open("a") as log:
        log.write(LINE % 1 + LINE % 2)
    job.read(20 * S)
    assert not job.wants_search(300 * S)


def test_ranks_and_their_helpers(job, proc):
    rank, loader, other = proc(7), proc(8), proc(9, rank=1)
    job.update([rank, replace(loader, parent=7), other])
    job.follow_outputs(proc.path, None)
    assert [process.pid for process in job.main_processes()] == [7, 9]
