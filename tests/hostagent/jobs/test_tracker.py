import os
import subprocess
import sys
import time

import pytest

from hostagent.jobs import tracker
from hostagent.jobs.health import Health
from hostagent.jobs.identity import Rank
from hostagent.jobs.processes import TrainingProcess
from hostagent.jobs.tracker import JobTracker
from hostagent.logs import FORMATS
from hostagent.logs.format import LogFormat, Mark
from hostagent.memory import JobMemory
from tests.hostagent.jobs.host import LINE, Host


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
    assert (job.health, job.reason) == (Health.DIED, "SIGKILL")


def test_a_job_that_has_finished_has_ended(host, trainers, eventually):
    process = trainers.start("end", "-", 0, 3, 0.2)
    eventually(lambda: host.job(trainers.job))
    process.wait()
    (job,) = host.look()
    assert (job.health, job.reason, job.counter.iterations) == (Health.ENDED, "exit code 0", 3)


def test_a_rank_that_was_started_again_and_finished_is_no_death(host, trainers, eventually):
    other = trainers.start(rank=1, log="other.log")
    first = trainers.start(rank=0)
    eventually(lambda: (job := host.job(trainers.job)) and job.local_ranks == 2)
    first.kill()
    first.wait()
    eventually(lambda: host.job(trainers.job).local_ranks == 1)
    again = trainers.start("end", "-", 0, 1, 0.3, rank=0, log="again.log")
    eventually(lambda: host.job(trainers.job).local_ranks == 2)
    again.wait()
    eventually(lambda: host.job(trainers.job).local_ranks == 1)
    job = host.job(trainers.job)
    assert job.statuses == {0: 0}
    assert other.poll() is None


def test_a_job_that_fails_in_the_middle_has_died(host, trainers, eventually):
    process = trainers.start("fail", "-", 0, 3, 0.2)
    eventually(lambda: host.job(trainers.job))
    process.wait()
    (job,) = host.look()
    assert (job.health, job.reason, job.failed) == (Health.DIED, "exit code 1", True)


def test_a_job_that_shows_no_iteration_for_long_hangs_until_it_does(host, trainers, tmp_path, eventually):
    trainers.start("idle", "-", 0, 3, 0.02, mode="ab")
    job = eventually(lambda: (job := host.job(trainers.job)) and job.counter.iterations == 3 and job)
    now = time.monotonic_ns()
    assert host.jobs.check(now) == []
    assert host.jobs.check(now + 59 * 10**9) == []
    assert host.jobs.check(now + 61 * 10**9) == [job]
    assert host.jobs.check(now + 62 * 10**9) == []
    assert (job.health, job.reason) == (Health.HUNG, "no iteration for more than 60 s")
    with (tmp_path / "train.log").open("a") as log:
        log.write(LINE % 4)
    host.look()
    assert host.jobs.check(time.monotonic_ns()) == [job]
    assert (job.health, job.reason) == (Health.RUNNING, "")


def test_a_job_without_any_iteration_yet_does_not_hang(host, trainers, eventually):
    trainers.start()
    eventually(lambda: host.job(trainers.job))
    assert host.jobs.check(time.monotonic_ns() + 10**15) == []


def test_an_elastic_restart_goes_on_where_it_was(host, trainers, tmp_path, eventually):
    """The launcher (this process) starts the ranks again, from a checkpoint, into the same log."""
    first = trainers.start("idle", "-", 0, 5, 0.02, mode="ab")
    job = eventually(lambda: (job := host.job(trainers.job)) and job.counter.iterations == 5 and job)
    started = job.started_ns
    first.kill()
    first.wait()
    assert host.look() == [job]
    assert job.health is Health.DIED
    second = trainers.start(mode="ab")
    again = eventually(lambda: host.job(trainers.job))
    assert again is job
    assert (job.started_ns, job.health, job.counter.iterations) == (started, Health.RUNNING, 5)
    with (tmp_path / "train.log").open("a") as log:
        log.write("".join(LINE % n for n in (4, 5, 6, 7)))  # the checkpoint is of iteration 3
    host.look()
    assert job.counter.iterations == 7
    second.kill()
    second.wait()


def test_another_launchers_job_of_the_same_name_is_another_job(host, trainers, eventually):
    first = trainers.start("idle", "-", 0, 5, 0.02)
    job = eventually(lambda: (job := host.job(trainers.job)) and job.counter.iterations == 5 and job)
    first.kill()
    first.wait()
    host.look()
    members = [
        TrainingProcess(os.getpid(), Rank(trainers.job, 0, 1), time.monotonic_ns(), 1, parent=os.getppid())
    ]
    host.jobs.update(members)
    assert host.jobs.jobs[trainers.job] is not job
    assert host.jobs.jobs[trainers.job].counter.iterations == 0


def test_the_agent_starts_again_and_no_iteration_is_lost(host, trainers, tmp_path, eventually):
    trainers.start("idle", "-", 0, 30, 0.01)
    eventually(lambda: (job := host.job(trainers.job)) and job.counter.iterations == 30)
    again = Host()
    eventually(lambda: (job := again.job(trainers.job)) and job.counter.iterations == 30)
    job = again.jobs.jobs[trainers.job]
    written_ns = time.monotonic_ns() - (time.time_ns() - (tmp_path / "train.log").stat().st_mtime_ns)
    assert abs(job.counter.last_ns - written_ns) < 2 * 10**8  # when it was written, not when it was read
    again.jobs.close()


def kept(host):
    """What is known of the jobs, by way of the file that keeps it."""
    return tuple(JobMemory.model_validate_json(memory.model_dump_json()) for memory in host.jobs.remember())


def broken(line):
    """A parser with a mistake in it."""
    return Mark(int(line.split()[1]), 1_000 // int(line.split()[2])) if line.startswith("broken ") else None


def test_what_goes_wrong_with_one_job_is_its_own(trainers, tmp_path, eventually, capsys):
    host = Host(formats=(LogFormat("broken", broken), *FORMATS))
    trainers.start("idle", "-", 0, 0, 0, mode="ab", job=f"{trainers.job}-evil", log="evil.log")
    trainers.start("idle", "-", 0, 0, 0, mode="ab")
    eventually(lambda: host.job(trainers.job) and host.job(f"{trainers.job}-evil"))
    (tmp_path / "evil.log").write_text("broken 1 1\nbroken 2 0\n")
    (tmp_path / "train.log").write_text(LINE % 1)
    eventually(lambda: host.job(trainers.job).counter.iterations == 1)
    for number in range(3):
        with (tmp_path / "evil.log").open("a") as file:
            file.write(f"broken {number} 0\n")
        host.look()
    with (tmp_path / "evil.log").open("a") as file:
        file.write("broken 7 1\n")
    eventually(lambda: host.job(f"{trainers.job}-evil").counter.iterations == 1)
    said = [line for line in capsys.readouterr().out.splitlines() if "cannot be followed" in line]
    assert len(said) == 1
    assert f"{trainers.job}-evil" in said[0]
    assert "ZeroDivisionError" in said[0]
    host.jobs.close()


def test_a_job_that_cannot_be_kept_is_left_out_alone(trainers, tmp_path, eventually, capsys):
    host = Host(formats=(LogFormat("\ud800", broken), *FORMATS))  # a name that is no text
    trainers.start("idle", "-", 0, 0, 0, mode="ab", job=f"{trainers.job}-evil", log="evil.log")
    trainers.start("idle", "-", 0, 0, 0, mode="ab")
    eventually(lambda: host.job(trainers.job) and host.job(f"{trainers.job}-evil"))
    (tmp_path / "evil.log").write_text("broken 1 1\n")
    eventually(lambda: host.job(f"{trainers.job}-evil").counter.iterations == 1)
    for _ in range(2):
        assert [memory.id for memory in kept(host)] == [trainers.job]
    assert capsys.readouterr().out.count("kept") == 1
    host.jobs.close()


class Restarts:
    """A job whose log this test writes, and an agent that is started again and again."""

    def __init__(self, host, trainers, log, eventually):
        self.host, self.trainers, self.log, self.eventually = host, trainers, log, eventually
        self.trainer = trainers.start("idle", "-", 0, 0, 0, mode="ab")

    def write(self, *numbers):
        self.append("".join(LINE % number for number in numbers))

    def append(self, text):
        with self.log.open("a") as file:
            file.write(text)

    def counted(self, iterations):
        job = self.eventually(
            lambda: (job := self.host.job(self.trainers.job)) and job.counter.iterations == iterations and job
        )
        for _ in range(3):
            self.host.look()
        assert job.counter.iterations == iterations
        return job

    def restart(self):
        memory = kept(self.host)
        self.host.jobs.close()
        self.host = Host(memory)


@pytest.fixture
def restarts(host, trainers, tmp_path, eventually):
    restarts = Restarts(host, trainers, tmp_path / "train.log", eventually)
    eventually(lambda: host.job(trainers.job))
    yield restarts
    restarts.host.jobs.close()


def copytruncate(log):
    log.with_suffix(".1").write_bytes(log.read_bytes())
    os.truncate(log, 0)


def test_what_was_truncated_before_the_agent_started_again_is_not_lost(restarts):
    restarts.write(*range(101, 151))  # a resumed run
    started_ns = restarts.counted(50).started_ns
    copytruncate(restarts.log)
    restarts.write(*range(151, 161))
    restarts.counted(60)
    restarts.restart()
    job = restarts.counted(60)
    assert (job.log_format, job.source, job.started_ns) == ("megatron", "stdout", started_ns)
    assert restarts.host.durations == {}  # they have all been told
    restarts.write(161)
    restarts.counted(61)
    assert restarts.host.durations == {restarts.trainers.job: [20_000_000]}
    assert job.log_format == "megatron"


def test_what_is_truncated_while_there_is_no_agent_is_not_lost(restarts):
    restarts.write(*range(1, 51))
    restarts.counted(50)
    memory = kept(restarts.host)
    restarts.host.jobs.close()
    time.sleep(0.5)  # 20 ms each, says the log
    restarts.write(*range(51, 61))
    copytruncate(restarts.log)
    restarts.write(*range(61, 71))
    restarts.host = Host(memory)
    restarts.counted(70)


def test_a_log_that_is_rotated_while_there_is_no_agent(restarts, tmp_path):
    restarts.write(*range(1, 51))
    restarts.counted(50)
    memory = kept(restarts.host)
    restarts.host.jobs.close()
    restarts.log.rename(tmp_path / "train.log.1")  # and the job goes on writing to it
    restarts.log = tmp_path / "train.log.1"
    restarts.write(51, 52)
    restarts.host = Host(memory)
    restarts.counted(52)


def test_an_earlier_run_in_the_same_log_is_not_read_by_an_agent_that_starts_again(
    host, trainers, tmp_path, eventually
):
    log = tmp_path / "train.log"
    log.write_text("".join(LINE % n for n in range(1, 1001)))
    restarts = Restarts(host, trainers, log, eventually)
    eventually(lambda: host.job(trainers.job))
    restarts.write(*range(901, 911))
    restarts.counted(10)
    restarts.restart()
    restarts.write(911)
    restarts.counted(11)
    restarts.host.jobs.close()


def test_a_rollback_and_a_torn_line_across_a_restart(restarts):
    restarts.write(*range(1, 51))
    line = LINE % 51
    restarts.append(line[:16])  # " iteration     5"
    restarts.counted(50)
    restarts.restart()
    restarts.append(line[16:])
    restarts.write(52)
    restarts.counted(52)
    restarts.restart()
    restarts.write(41)
    restarts.host.look()
    restarts.restart()  # the mark is held
    restarts.write(42)
    restarts.counted(42)


def test_an_elastic_restart_while_there_is_no_agent(restarts):
    restarts.write(*range(1, 51))
    first = restarts.counted(50)
    memory = kept(restarts.host)
    restarts.host.jobs.close()
    restarts.trainer.kill()
    restarts.trainer.wait()
    restarts.trainers.start("idle", "-", 0, 0, 0, mode="ab")
    restarts.write(*range(41, 61))
    restarts.host = Host(memory)
    job = restarts.counted(60)
    assert job.started_ns == first.started_ns


def test_what_is_kept_of_another_process_is_of_no_use(restarts):
    (memory,) = kept(restarts.host)
    restarts.host.jobs.close()
    other = tuple((pid, ticks + 1, 1) for pid, ticks, _ in memory.processes)
    restarts.host = Host([memory.model_copy(update={"processes": other, "started_ns": 1})])
    restarts.counted(0)
    restarts.write(1)
    assert restarts.counted(1).started_ns > 10**9  # its own
    assert [one.id for one in restarts.host.jobs.remember()] == [restarts.trainers.job]


def test_a_job_that_was_told_of_goes_on_being_told(restarts):
    name, pid = restarts.trainers.job, restarts.trainer.pid
    assert restarts.host.jobs.tell(pid, "101", "105")
    restarts.counted(5)
    restarts.restart()
    assert restarts.counted(5).log_format == "report"
    assert restarts.host.jobs.tell(pid, "101", "107")
    assert restarts.counted(7).source == "report"
    assert restarts.host.durations.get(name, []) == []


def test_what_a_rank_tells_goes_before_its_log(host, trainers, tmp_path, eventually):
    process = trainers.start("idle", "-", 0, 3, 0.02, mode="ab")
    job = eventually(lambda: (job := host.job(trainers.job)) and job.counter.iterations == 3 and job)
    assert not host.jobs.tell(1, "1", "4")
    assert host.jobs.tell(process.pid, "4", "4")
    host.look()
    assert (job.log_format, job.source, job.counter.iterations) == ("report", "report", 4)
    with (tmp_path / "train.log").open("a") as log:
        log.write(LINE % 5)
    host.look()
    assert job.counter.iterations == 4
    for now in ("-5", "5", str(10**18)):
        host.jobs.tell(process.pid, "4", now)
    host.look()
    assert job.counter.iterations == 5
    assert job.rejected() == {"iteration out of range": 2}


def test_an_agent_that_comes_late_is_told_all(host, trainers, eventually):
    process = trainers.start()
    job = eventually(lambda: host.job(trainers.job))
    host.jobs.tell(process.pid, "11", "57")
    host.look()
    assert job.counter.iterations == 47


def test_a_log_on_stderr(host, trainers, tmp_path, eventually):
    code = f"import sys, time; sys.stderr.write({LINE % 1!r}); sys.stderr.flush(); time.sleep(60)"
    with (tmp_path / "err.log").open("wb") as stderr:
        environ = {"RANK": "0", "WORLD_SIZE": "1", "SLURM_JOB_ID": trainers.job}
        process = subprocess.Popen(
            [sys.executable, "-c", code], env=environ, stdout=subprocess.DEVNULL, stderr=stderr
        )
    trainers.running.append(process)
    job = eventually(lambda: (job := host.job(trainers.job)) and job.log_format and job)
    assert (job.source, job.counter.iterations) == ("stderr", 1)


def test_a_job_in_a_container(host, trainers, tmp_path, eventually):
    """PID, mount, network and user-visible names of its own; its log is opened by its descriptor."""
    if os.geteuid() != 0:
        pytest.skip("namespaces need root")
    environ = {"RANK": "0", "WORLD_SIZE": "1", "SLURM_JOB_ID": trainers.job, "PATH": os.environ["PATH"]}
    code = f"import os, time; print({LINE % 1!r} + str(os.getpid()), flush=True); time.sleep(60)"
    apart = ["unshare", "--pid", "--fork", "--mount", "--mount-proc", "--kill-child"]
    with (tmp_path / "train.log").open("wb") as log:
        process = subprocess.Popen(
            [*apart, sys.executable, "-c", code], env=environ, stdout=log, stderr=subprocess.DEVNULL
        )
    trainers.running.append(process)
    job = eventually(lambda: (job := host.job(trainers.job)) and job.counter.iterations == 1 and job)
    assert (tmp_path / "train.log").read_text().splitlines()[1] == "1"  # the pid that it has in there
    assert (job.source, job.log_format, job.local_ranks) == ("stdout", "megatron", 1)


def test_a_job_with_no_progress_source_says_so(host, trainers, eventually):
    environ = {"RANK": "0", "WORLD_SIZE": "1", "SLURM_JOB_ID": trainers.job}
    process = subprocess.Popen(
        ["sleep", "60"], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    trainers.running.append(process)
    job = eventually(lambda: host.job(trainers.job))
    assert host.jobs.search(time.monotonic_ns())
    assert (job.source, job.log_format) == ("", "")
    assert not host.jobs.search(time.monotonic_ns())  # not again so soon


def test_the_log_is_searched_for_when_the_outputs_are_none(host, trainers, tmp_path, eventually):
    """``python train.py | tee train.log``."""
    environ = {"RANK": "0", "WORLD_SIZE": "1", "SLURM_JOB_ID": trainers.job}
    code = f"import sys, time; time.sleep(0.3); print({LINE % 1!r}, end='', flush=True); time.sleep(60)"
    tee = subprocess.Popen(
        ["tee", str(tmp_path / "train.log")], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    process = subprocess.Popen([sys.executable, "-c", code], env=environ, stdout=tee.stdin, stderr=tee.stdin)
    assert tee.stdin
    tee.stdin.close()
    trainers.running += [process, tee]
    eventually(lambda: (tmp_path / "train.log").exists() and host.job(trainers.job))
    assert host.jobs.search(time.monotonic_ns())
    job = eventually(lambda: (job := host.job(trainers.job)) and job.counter.iterations == 1 and job)
    assert (job.source, job.log_format) == ("pipe", "megatron")


@pytest.mark.parametrize("flags", [os.O_PATH, os.O_RDONLY])
def test_what_a_process_may_only_read_is_no_log_of_its_own(host, trainers, tmp_path, eventually, flags):
    """Any file can be opened for its name alone, another tenant's log, too."""
    (tmp_path / "other.log").write_text(LINE % 1 + LINE % 2)
    environ = {"RANK": "0", "WORLD_SIZE": "1", "SLURM_JOB_ID": trainers.job}
    for name, mode in (("mine", flags), ("written", os.O_RDWR)):
        stdout = os.open(tmp_path / "other.log", mode)
        process = subprocess.Popen(
            [sys.executable, "-c", f"import os, time; os.dup2({stdout}, 1); time.sleep(60)"],
            env={**environ, "SLURM_JOB_ID": name + trainers.job},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[stdout],
        )
        os.close(stdout)
        trainers.running.append(process)
        eventually(lambda: os.readlink(f"/proc/{process.pid}/fd/1").endswith("other.log"))  # noqa: B023
    eventually(lambda: (job := host.job("written" + trainers.job)) and job.source)
    job = eventually(lambda: host.job("mine" + trainers.job))
    assert (job.source, job.counter.iterations) == ("", 0)


def test_a_search_goes_on_in_steps(host, trainers, tmp_path, monkeypatch, eventually):
    """However many descriptors there are on the host, the agent's thread is not held up."""
    environ = {"RANK": "0", "WORLD_SIZE": "1", "SLURM_JOB_ID": trainers.job}
    tee = subprocess.Popen(
        ["tee", str(tmp_path / "train.log")], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    code = "import os, time; fds = [os.dup(0) for _ in range(500)]; open('ready', 'w'); time.sleep(60)"
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=environ, stdout=tee.stdin, stderr=tee.stdin, cwd=tmp_path
    )
    assert tee.stdin
    tee.stdin.close()
    trainers.running += [process, tee]
    eventually(lambda: (tmp_path / "ready").exists() and (tmp_path / "train.log").exists())
    job = eventually(lambda: host.job(trainers.job))
    monkeypatch.setattr(tracker, "SEARCH_NS", 0)
    now = time.monotonic_ns()
    steps = 0
    while not job.source:
        assert host.jobs.search(now)
        steps += 1
    assert job.source == "pipe"
    assert steps > 500
    while host.jobs.search(now):
        pass  # to its end; then none is due


def test_jobs_whose_lines_take_long_leave_others_their_turn(
    host, trainers, tmp_path, monkeypatch, eventually
):
    names = [f"{trainers.job}-{n}" for n in range(3)]
    for name in names:
        trainers.start("idle", "-", 0, 1, 0.01, job=name, log=f"{name}.log")
    eventually(lambda: all((job := host.job(name)) and job.counter.iterations == 1 for name in names))
    monkeypatch.setattr(tracker, "READ_NS", 0)
    for number in (2, 3):
        for name in names:
            with (tmp_path / f"{name}.log").open("a") as log:
                log.write(LINE % number)
        got = [host.jobs.read(time.monotonic_ns()) for _ in names]
        assert [len(progress) for progress in got] == [1, 1, 1]
        assert sorted(progress.job.id for (progress,) in got) == names
    assert host.jobs.behind


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
        eventually(lambda: host.look() or len(job._logs) == 2)
        helper.kill()
        helper.wait()
        eventually(lambda: host.look() or len(job._logs) == 1)
    assert len(os.listdir("/proc/self/fd")) == before


def test_pid_of_a_writer_that_has_gone_is_not_followed(tmp_path):
    """The same pid with another stdout, in a job of another name: as after the pids have wrapped around."""
    line = " iteration %8d/    1000 | elapsed time per iteration (ms): 20.0 |\n"
    (tmp_path / "a.log").write_text(line % 1 + line % 2)
    (tmp_path / "b.log").write_text("".join(line % n for n in range(1, 100)))
    for pid in ("7", "8"):
        (tmp_path / pid / "fd").mkdir(parents=True)
        (tmp_path / pid / "fdinfo").mkdir()
        (tmp_path / pid / "fdinfo" / "1").write_text("flags:\t0100001\n")
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
