import os
import socket
import subprocess
import sys
import time

import pytest

from hostagent.jobs.identity import Rank
from hostagent.jobs.processes import ProcessFinder, own_network_namespace


@pytest.fixture
def finder():
    return ProcessFinder("/proc", "h1", own_network_namespace("/proc"))


def scan(finder):
    return finder.scan(time.monotonic_ns())


def ours(finder, *processes):
    return [finder.processes.get(process.pid) for process in processes]


def test_process_comes_and_goes(finder, trainers, eventually):
    before = time.monotonic_ns()
    process = trainers.start(rank=1, job="comes-and-goes")
    eventually(lambda: scan(finder) and process.pid in finder.processes)
    found = finder.processes[process.pid]
    assert found.rank == Rank("comes-and-goes", 1, 2)
    # The kernel keeps the start in ticks of 10 ms.
    assert before - 20_000_000 <= found.started_ns <= time.monotonic_ns()
    assert not scan(finder)
    process.kill()
    # Not waited for yet, it is a zombie, which trains no more.
    eventually(lambda: scan(finder))
    assert process.pid not in finder.processes


def test_exec_makes_a_training_process(finder, eventually):
    code = (
        "import os,sys; sys.stdin.readline(); os.execve('/bin/sleep', ['sleep', '60'], {**os.environ, **%r})"
    )
    environ = {"RANK": "0", "WORLD_SIZE": "2", "SLURM_JOB_ID": "exec-job"}
    process = subprocess.Popen([sys.executable, "-c", code % environ], stdin=subprocess.PIPE, env={})
    try:
        scan(finder)
        scan(finder)
        assert process.pid not in finder.processes
        assert process.stdin
        process.stdin.write(b"\n")
        process.stdin.close()
        eventually(lambda: scan(finder) and process.pid in finder.processes)
        assert finder.processes[process.pid].rank.job == "exec-job"
    finally:
        process.kill()
        process.wait()


def test_known_others_are_looked_at_less_and_less_often(tmp_path):
    (tmp_path / "7").mkdir()
    environ = tmp_path / "7" / "environ"
    environ.write_bytes(b"")
    (tmp_path / "7" / "stat").write_text("7 (a) b (c) S " + " ".join(str(n) for n in range(4, 53)))
    finder = ProcessFinder(str(tmp_path), "h1", None)
    finder.scan(1_000)
    finder.scan(2_000)  # known for 1,000 ns: next look after as long
    environ.write_bytes(b"RANK=0\0WORLD_SIZE=1\0SLURM_JOB_ID=9\0")
    assert not finder.scan(2_500)
    assert finder.scan(3_000)
    assert finder.processes[7].rank == Rank("9", 0, 1)
    assert finder.processes[7].ticks == 22  # field 22, whatever the command is called


def test_another_process_with_the_same_pid(tmp_path):
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "environ").write_bytes(b"RANK=0\0WORLD_SIZE=1\0SLURM_JOB_ID=9\0")
    stat = tmp_path / "7" / "stat"
    stat.write_text("7 (a) S " + "0 " * 18 + "500 0")
    finder = ProcessFinder(str(tmp_path), "h1", None)
    finder.scan(1)
    stat.write_text("7 (a) S " + "0 " * 18 + "501 0")
    assert finder.scan(2)
    assert finder.processes[7].ticks == 501


def test_other_network_namespaces_are_not_ours(finder, trainers, two_hosts, eventually):
    here, there = trainers.start(), trainers.start(namespace=two_hosts.a)
    everyone = ProcessFinder("/proc", "h1", None)
    inside = ProcessFinder(
        "/proc", "h1", two_hosts.inside(two_hosts.a, lambda: own_network_namespace("/proc"))
    )
    eventually(lambda: scan(inside) and ours(inside, here, there)[1])
    scan(finder)
    scan(everyone)
    assert [found is not None for found in ours(finder, here, there)] == [True, False]
    assert [found is not None for found in ours(inside, here, there)] == [False, True]
    assert [found is not None for found in ours(everyone, here, there)] == [True, True]


def test_sockets_are_mapped_to_jobs(finder, trainers, eventually):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        process = trainers.start("connect", "127.0.0.1", port, 0, 0, job="has-sockets")
        connection, _ = server.accept()
        with connection:
            eventually(lambda: scan(finder) and process.pid in finder.processes)
            links = [
                os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{process.pid}/fd")
            ]
            inodes = [int(link[8:-1]) for link in links if link.startswith("socket:")]
            owners = finder.socket_owners()
            assert inodes
            assert [owners.get(inode) for inode in inodes] == ["has-sockets"] * len(inodes)
            assert os.fstat(connection.fileno()).st_ino not in owners


@pytest.mark.parametrize(
    ("dropped", "sees"),
    [((), True), (("-sys_ptrace",), False), (("-dac_read_search",), False), (("-net_raw",), True)],
)
def test_what_may_be_seen(dropped, sees):
    code = "from hostagent.jobs.processes import sees_everyone; print(sees_everyone())"
    sets = [part for name in dropped for part in ("--bounding-set", name, "--inh-caps", name)]
    wrapper = ["setpriv", *sets] if sets else []
    done = subprocess.run([*wrapper, sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(sees)


def test_processes_that_may_not_be_read_are_no_error(trainers):
    process = trainers.start()
    code = (
        "import os, time; from hostagent.jobs.processes import ProcessFinder\n"
        "os.setuid(65534); finder = ProcessFinder('/proc', 'h1', None); finder.scan(time.monotonic_ns())\n"
        f"print({process.pid} in finder.processes, finder.denied)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False True"
