"""Jobs whose logs are on a file system that does not answer."""

import contextlib
import sys
import threading
import time

import pytest
from structlog.testing import capture_logs

from hostagent import lane
from hostagent.jobs import tracker
from hostagent.jobs.health import Health
from hostagent.jobs.identity import Rank
from hostagent.jobs.job import TrackedJob
from hostagent.jobs.processes import TrainingProcess
from hostagent.jobs.sources import SourceFinder
from hostagent.jobs.tracker import JobTracker
from tests.hostagent.jobs.host import LINE, Host


def looks(host, seconds):
    """Look again and again; return how long the longest look took."""
    longest, end = 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        host.look()
        host.jobs.search(time.monotonic_ns())
        host.jobs.check(time.monotonic_ns())
        host.jobs.remember()
        longest = max(longest, time.monotonic() - begun)
        time.sleep(0.02)
    return longest


def test_a_log_whose_file_system_hangs_holds_up_nobody_elses(
    host, trainers, hanging, monkeypatch, eventually
):
    monkeypatch.setattr(lane, "REST_NS", 300_000_000)
    ours, other = f"{trainers.job}-ours", f"{trainers.job}-other"
    trainers.start("idle", "-", 0, 200, 0.02, job=ours, log=str(hanging.log))
    trainers.start("idle", "-", 0, 500, 0.02, job=other, log="other.log")
    eventually(lambda: all((job := host.job(name)) and job.counter.iterations > 5 for name in (ours, other)))
    assert len(host.jobs.remember()) == 2
    hanging.stop()
    with capture_logs() as logs:
        assert looks(host, 2.0) < 0.5  # it waits for 0.1 s once
    told = [(line["event"], line["job"]) for line in logs if "answer" in line["event"]]
    assert told == [("a job's logs do not answer, they are not read meanwhile", ours)]
    at = {name: host.jobs.jobs[name].counter.iterations for name in (ours, other)}
    begun = time.monotonic()
    assert looks(host, 1.0) < 0.1  # and not again
    assert host.jobs.jobs[ours].counter.iterations == at[ours]
    assert host.jobs.jobs[other].counter.iterations - at[other] > 0.5 * (time.monotonic() - begun) / 0.02
    assert {memory.id for memory in host.jobs.remember()} == {ours, other}
    hanging.go_on()
    with capture_logs() as logs:
        eventually(lambda: host.job(ours).counter.iterations > at[ours] + 20)
    assert [line["job"] for line in logs if line["event"] == "a job's logs answer again"] == [ours]
    assert len(host.durations[ours]) == host.jobs.jobs[ours].counter.iterations


def test_a_file_system_that_hangs_does_not_hold_up_the_search_for_others_logs(
    trainers, tmp_path, hanging, monkeypatch, eventually
):
    monkeypatch.setattr("hostagent.jobs.job.PATIENT_NS", 0)
    host = Host(patterns=[f"{hanging.log.parent}/*.log", f"{tmp_path}/named-*.log"])
    with contextlib.closing(host.jobs):
        ours, other = f"{trainers.job}-a", f"{trainers.job}-b"
        opens = (
            "import sys, time; file = open(sys.argv[1], 'a'); print(file.name, flush=True); time.sleep(60)"
        )
        for name, log in ((ours, str(hanging.log)), (other, str(tmp_path / "named-b.log"))):
            trainers.start(log, job=name, log=f"{name}.out", program=opens)
            eventually(lambda log=log, name=name: log in (tmp_path / f"{name}.out").read_text())
        hanging.stop()
        (tmp_path / "named-b.log").write_text(LINE % 1)
        assert looks(host, 3.0) < 0.5
        job = host.jobs.jobs[other]
        assert (job.source, job.counter.iterations) == ("glob", 1)
        assert host.jobs.jobs[ours].counter.iterations == 0


def test_the_end_of_a_job_whose_logs_hang_is_seen(host, trainers, hanging, eventually):
    process = trainers.start("idle", "-", 0, 3, 0.02, log=str(hanging.log))
    eventually(lambda: (job := host.job(trainers.job)) and job.counter.iterations == 3)
    process.kill()
    process.wait()
    hanging.stop()
    begun = time.monotonic()
    (job,) = eventually(host.look)
    assert time.monotonic() - begun < 2
    assert (job.health, job.reason, job.counter.iterations) == (Health.DIED, "SIGKILL", 3)


class Stuck:
    """Work with jobs that hangs until it is let go."""

    def __init__(self):
        self._go_on = threading.Event()
        self.turns = []

    def __call__(self, job):
        self.turns.append(job.id)
        self._go_on.wait(30)

    def let_go(self):
        self._go_on.set()


@pytest.fixture
def stuck(monkeypatch):
    monkeypatch.setattr(lane, "REST_NS", 0)
    stuck = Stuck()
    yield stuck
    stuck.let_go()


def lanes():
    return [thread for thread in threading.enumerate() if thread.name in ("jobs' logs", "search for logs")]


def job_of(user, name):
    job = TrackedJob(name, 1)
    job.update([TrainingProcess(7, Rank(name, 0, 1), 1, 1, user=user)])
    return job


def test_a_user_has_only_so_many_threads_hang_however_many_jobs_come_and_go(stuck, eventually):
    before = len(lanes())
    with contextlib.closing(JobTracker("/proc")) as jobs, capture_logs() as logs:
        for number in range(3):
            some = [job_of(7, f"{number}-{n}") for n in range(tracker.MAX_HANGING)]
            begun = time.monotonic()
            assert jobs._each(some, stuck) == []
            assert time.monotonic() - begun < (0.3 if number else 0.2 * tracker.MAX_HANGING)
            for job in some:
                jobs._close(job)
        assert stuck.turns == [f"0-{n}" for n in range(tracker.MAX_HANGING)]
        assert len(lanes()) - before <= tracker.MAX_HANGING + 1
        seen = []
        assert jobs._each([job_of(8, "other"), job_of(7, "more")], lambda job: seen.append(job.id)) == []
        assert seen == ["other"]
        assert [line["user"] for line in logs if line["event"].startswith("too many logs")] == [7]
        stuck.let_go()
        eventually(lambda: len(lanes()) - before <= 1)
        jobs._each([job_of(7, "more")], lambda job: seen.append(job.id))
        assert seen == ["other", "more"]


def test_where_no_thread_can_be_had_the_agent_goes_on(monkeypatch):
    def start(thread):
        raise RuntimeError("can't start new thread")

    seen = []
    with contextlib.closing(JobTracker("/proc")) as jobs:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", start)
            assert jobs._each([job_of(7, "a"), job_of(7, "b")], lambda job: seen.append(job.id)) == []
            jobs.jobs["a"] = job_of(7, "a")
            assert jobs.search(1)
            assert seen == []
        jobs._each([job_of(7, "a")], lambda job: seen.append(job.id))
        assert seen == ["a"]


def test_a_search_that_hangs_is_laid_to_the_job_whose_process_it_looked_at(stuck, monkeypatch, eventually):
    before = len(lanes())
    descriptors = SourceFinder._descriptors

    def hang(finder, pid):
        if pid in (8, 9):
            stuck(job_of(7, str(pid)))
        return descriptors(finder, pid)

    monkeypatch.setattr(SourceFinder, "_descriptors", hang)
    with contextlib.closing(JobTracker("/proc")) as jobs:
        for name, pid in (("first", 1 << 30), ("second", 8), ("third", 9)):
            jobs.jobs[name] = job = TrackedJob(name, 1)
            job.update([TrainingProcess(pid, Rank(name, 0, 1), 1, 1, user=pid)])
        assert jobs.search(1)
        assert set(jobs._lost) == {"second"}
        assert jobs.search(10**12)
        assert set(jobs._lost) == {"second", "third"}
        assert stuck.turns == ["8", "9"]
        stuck.let_go()
        eventually(lambda: len(lanes()) == before)  # none is left open
        assert jobs.search(10**13)


def test_what_is_rejected_can_be_asked_for_while_a_late_thread_reads():
    job, over = TrackedJob("a", 1), threading.Event()
    job.tell("1", "1")

    def reject():
        number = 0
        while not over.is_set():
            job._told.rejected[str(number := number + 1)] = 1
            if number % 5000 == 0:
                job._told.rejected.clear()

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=reject)
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for _ in range(300):
            job.rejected()
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(interval)
