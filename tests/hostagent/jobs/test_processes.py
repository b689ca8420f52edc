import os
import socket
import subprocess
import sys
import time

import pytest

from hostagent.jobs import processes
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


def fake(proc, pid, environ, command, parent=1, ticks=500):
    """A process in a proc file system of our own."""
    directory = proc / str(pid)
    directory.mkdir(exist_ok=True)
    (directory / "environ").write_bytes(b"".join(f"{k}={v}".encode() + b"\0" for k, v in environ.items()))
    (directory / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in command))
    (directory / "stat").write_text(f"{pid} (a) S {parent} " + "0 " * 17 + f"{ticks} 0")
    return directory


def test_what_the_pod_is_told_names_the_job(tmp_path):
    environ = {
        "RANK": "0",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "m",
        "MASTER_PORT": "1",
        "KUBERNETES_SERVICE_HOST": "x",
    }
    root = fake(tmp_path, 7, environ, ["python", "train.py"]) / "root"
    (root / "etc" / "podinfo").mkdir(parents=True)
    (root / "etc" / "podinfo" / "labels").write_text('jobset.sigs.k8s.io/jobset-name="llama"\n')
    account = root / "var" / "run" / "secrets" / "kubernetes.io" / "serviceaccount"
    account.mkdir(parents=True)
    (account / "namespace").write_text("ml")
    finder = ProcessFinder(str(tmp_path), "h1", None)
    finder.scan(1)
    assert finder.processes[7].rank == Rank("ml/llama", 0, 2)


def test_a_pods_files_are_looked_up_in_its_root_only(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "labels").write_text('job-name="of-the-host"\n')
    environ = {
        "RANK": "0",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "m",
        "MASTER_PORT": "1",
        "KUBERNETES_SERVICE_HOST": "x",
    }
    root = fake(tmp_path / "proc", 7, environ, ["python", "train.py"]) / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc" / "podinfo").symlink_to(tmp_path)
    finder = ProcessFinder(str(tmp_path / "proc"), "h1", None)
    finder.scan(1)
    assert finder.processes[7].rank.job == "m:1"


def test_a_pod_that_may_not_read_a_file_does_not_learn_what_is_in_it(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("another user's file needs root")
    root = tmp_path / "7" / "root"
    (root / "etc" / "podinfo").mkdir(parents=True)
    environ = "RANK=0\0WORLD_SIZE=1\0KUBERNETES_SERVICE_HOST=10.0.0.1\0JOBSET_NAME=llama\0"
    (tmp_path / "7" / "environ").write_text(environ)
    (tmp_path / "7" / "stat").write_text("7 (a) S " + "0 " * 18 + "500 0")
    os.chown(tmp_path / "7", 1001, 1001)
    secret = root / "etc" / "podinfo" / "namespace"
    secret.write_text("secret")
    for mode, job in ((0o600, "default/llama"), (0o644, "secret/llama")):
        secret.chmod(mode)
        finder = ProcessFinder(str(tmp_path), "h1", None)
        finder.scan(1)
        assert finder.processes[7].rank.job == job


def test_rank_0_of_lightning_is_the_parent_of_the_others(tmp_path):
    fake(tmp_path, 7, {"PATH": "/bin"}, ["python", "train.py", "--x"], parent=2)
    child = {"LOCAL_RANK": "1", "NODE_RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "m", "MASTER_PORT": "1"}
    fake(tmp_path, 8, child, ["/usr/bin/python3", "train.py", "--x"], parent=7)
    fake(tmp_path, 9, {"PATH": "/bin"}, ["bash"], parent=2)
    finder = ProcessFinder(str(tmp_path), "h1", None)
    finder.scan(1)
    assert {pid: found.rank for pid, found in finder.processes.items()} == {
        7: Rank("m:1", 0, 2), 8: Rank("m:1", 1, 2),
    }  # fmt: skip
    assert (finder.processes[8].parent, finder.processes[7].parent) == (7, 2)


def test_workers_of_ray_train_belong_to_their_cluster(tmp_path):
    fake(tmp_path, 7, {}, ["raylet", "--gcs-address=10.0.0.1:6379"])
    fake(tmp_path, 8, {"RAY_JOB_ID": "01000000"}, ["ray::RayTrainWorker.execute"], parent=7)
    finder = ProcessFinder(str(tmp_path), "h1", None)
    finder.scan(1)
    assert {pid: found.rank.job for pid, found in finder.processes.items()} == {
        8: "ray/10.0.0.1:6379/01000000"
    }


@pytest.mark.parametrize(
    ("more", "log"),
    [
        ({}, "/home/u/slurm-4711.out"),
        ({"SLURM_ARRAY_JOB_ID": "4700", "SLURM_ARRAY_TASK_ID": "3"}, "/home/u/slurm-4700_3.out"),
        ({"SLURM_SUBMIT_DIR": "relative"}, ""),
        ({"SLURM_JOB_ID": "../x"}, ""),
    ],
)
def test_where_slurm_writes(tmp_path, more, log):
    environ = {"RANK": "0", "WORLD_SIZE": "2", "SLURM_JOB_ID": "4711", "SLURM_SUBMIT_DIR": "/home/u", **more}
    fake(tmp_path, 7, environ, ["python"])
    finder = ProcessFinder(str(tmp_path), "h1", None)
    finder.scan(1)
    assert finder.processes[7].slurm_log == log


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


def test_another_users_processes_do_not_join_a_job(tmp_path):
    """Anybody can put another's job id into an environment."""
    if os.geteuid() != 0:
        pytest.skip("another user's process needs root")
    users = {7: 1001, 8: 1001, 9: 1002, 10: 1003}
    for pid, user in users.items():
        (tmp_path / str(pid)).mkdir()
        job = "4711@1002" if pid == 10 else "4711"
        (tmp_path / str(pid) / "environ").write_text(f"RANK=0\0WORLD_SIZE=4\0TORCHELASTIC_RUN_ID={job}\0")
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a) S " + "0 " * 18 + "500 0")
        os.chown(tmp_path / str(pid), user, user)
    finder = ProcessFinder(str(tmp_path), "h1", None)
    assert finder.scan(1)
    found = {pid: process.rank.job for pid, process in finder.processes.items()}
    assert found == {7: "4711", 8: "4711", 9: "4711@1002", 10: "4711@1002@1003"}
    for pid in (7, 8):
        (tmp_path / str(pid) / "stat").unlink()
    (tmp_path / "9" / "stat").write_text("9 (a) S " + "0 " * 18 + "600 0")  # exec'd anew, under the same pid
    assert finder.scan(2)
    assert finder.processes[9].rank.job == "4711"  # which is free now


def test_many_processes_are_looked_at_in_several_scans(tmp_path, monkeypatch):
    for pid in range(5, 10):
        (tmp_path / str(pid)).mkdir()
        environ = f"RANK=0\0WORLD_SIZE=1\0SLURM_JOB_ID={pid}\0" if pid > 7 else "A=1"
        (tmp_path / str(pid) / "environ").write_text(environ)
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a) S " + "0 " * 18 + "500 0")
    monkeypatch.setattr(processes, "SCAN_NS", 0)
    finder = ProcessFinder(str(tmp_path), "h1", None)
    found = []
    for now in range(1, 6):
        finder.scan(now)
        found.append(sorted(finder.processes))
    # Those never looked at go before those that do not train and are due again.
    assert found == [[], [], [], [8], [8, 9]]


def test_one_users_jobs_are_bounded_and_leave_others_theirs(finder, trainers, monkeypatch, eventually):
    if os.geteuid() != 0:
        pytest.skip("another user's processes need root")
    monkeypatch.setattr(processes, "MAX_JOBS", 3)
    environ = {"RANK": "0", "WORLD_SIZE": "1"}
    crowd = [
        subprocess.Popen(
            ["/bin/sleep", "60"], env={**environ, "TORCHELASTIC_RUN_ID": f"crowd-{n}"}, user=65534
        )
        for n in range(6)
    ]
    try:
        mine = trainers.start()
        eventually(lambda: scan(finder) or mine.pid in finder.processes)
        eventually(lambda: scan(finder) or finder.crowded)
        found = [one for one in ours(finder, *crowd) if one is not None]
        assert len(found) == 3
        assert finder.crowded == {65534}
        assert finder.user_of(found[0].rank.job) == 65534
        assert finder.processes[mine.pid].rank.job == trainers.job
        # One more rank of a job that is known is no further job.
        more = {**environ, "TORCHELASTIC_RUN_ID": found[0].rank.job}
        crowd.append(subprocess.Popen(["/bin/sleep", "60"], env=more, user=65534))
        eventually(lambda: scan(finder) or crowd[-1].pid in finder.processes)
    finally:
        for process in crowd:
            process.kill()
            process.wait()


HOARDER = """
import socket, sys, time
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
print("ready", flush=True)
time.sleep(60)
"""


def test_one_with_many_open_files_does_not_hide_the_sockets_of_others(
    finder, trainers, monkeypatch, eventually, tmp_path
):
    hoarder = trainers.start("900", program=HOARDER, log="hoarder.log", job=f"{trainers.job}-hoarder")
    modest = trainers.start("1", program=HOARDER, log="modest.log")
    for log in ("hoarder.log", "modest.log"):
        eventually(lambda log=log: "ready" in (tmp_path / log).read_text())
    eventually(lambda: scan(finder) or {hoarder.pid, modest.pid} <= finder.processes.keys())
    found = finder.socket_owners()
    assert sum(job == f"{trainers.job}-hoarder" for job in found.values()) == 900
    assert sum(job == trainers.job for job in found.values()) == 1
    finder.processes = {pid: finder.processes[pid] for pid in (hoarder.pid, modest.pid)}
    monkeypatch.setattr(processes, "OWNERS_NS", 300_000)
    found = finder.socket_owners()  # the hoarder's take some milliseconds
    assert 0 < sum(job == f"{trainers.job}-hoarder" for job in found.values()) < 900
    assert sum(job == trainers.job for job in found.values()) == 1
