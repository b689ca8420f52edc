import os
import signal
import subprocess

import pytest

from hostagent.jobs.exits import ExitWatch, describe


@pytest.fixture
def watch():
    watch = ExitWatch("/proc")
    yield watch
    watch.close()


@pytest.mark.parametrize(
    ("code", "status", "words"),
    [("exit 0", 0, "exit code 0"), ("exit 3", 3 << 8, "exit code 3"), ("kill -9 $$", 9, "SIGKILL")],
)
def test_how_a_process_ended_that_is_no_child_and_was_reaped(watch, code, status, words):
    """As the agent sees it: told by the pidfd alone."""
    process = subprocess.Popen(["sh", "-c", f"read _; {code}"], stdin=subprocess.PIPE)
    watch.watch(process.pid)
    process.communicate(b"\n")
    told = watch.status(process.pid)
    if told is None:
        pytest.skip("this kernel's pidfd does not tell exit codes (Linux 6.15)")
    assert (told, describe(told)) == (status, words)
    assert watch.status(process.pid) is None  # forgotten


def test_a_zombie_tells_too():
    process = subprocess.Popen(["sh", "-c", "exit 3"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert ExitWatch("/proc").status(process.pid) == 3 << 8
    process.wait()


def test_one_that_lives_has_no_status(watch):
    process = subprocess.Popen(["sleep", "60"])
    try:
        watch.watch(process.pid)
        assert watch.status(process.pid) is None
    finally:
        process.kill()
        process.wait()


def test_pids_of_another_proc_are_not_ours(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    watch = ExitWatch(str(tmp_path))
    watch.watch(os.getpid())
    assert len(os.listdir("/proc/self/fd")) == before
    assert watch.status(os.getpid()) is None


def test_nothing_is_left_open(watch):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        watch.watch(os.getpid())
    assert len(os.listdir("/proc/self/fd")) == before + 1
    watch.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_signals_without_a_name():
    assert describe(int(signal.SIGTERM)) == "SIGTERM"
    assert describe(40) == "signal 40"


def test_only_a_part_of_the_files_that_may_be_open_is_taken(monkeypatch):
    monkeypatch.setattr("resource.getrlimit", lambda _: (8, 8))
    watch = ExitWatch("/proc")
    for pid in [os.getpid(), os.getppid(), 1]:
        watch.watch(pid)
    assert len(watch._descriptors) == 2
    watch.close()
