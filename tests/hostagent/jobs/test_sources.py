import contextlib
import dataclasses
import os
import subprocess
import sys
import time

import pytest

from hostagent.jobs.identity import Rank
from hostagent.jobs.processes import TrainingProcess, start_ticks
from hostagent.jobs.sources import SourceFinder, outputs

WAIT = "import time; time.sleep(60)"


@contextlib.contextmanager
def running(*commands, **options):
    """Processes that end with the test; pipes between them where ``pipeline`` says so."""
    started = []
    try:
        started += (subprocess.Popen(command, **options) for command in commands)
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()


def training(pid, job="job", **more):
    return TrainingProcess(pid, Rank(job, 0, 1), 1, start_ticks("/proc", pid) or 1, user=os.getuid(), **more)


def search(process, *patterns, proc="/proc", job="job"):
    found = [named for named in SourceFinder(str(proc), patterns).search({job: [process]}) if named]
    assert {name for name, _ in found} <= {job}
    return [source for _, source in found]


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "train.log"
    path.write_bytes(b"hello\n")
    return path


def test_outputs_that_are_files(log, tmp_path):
    with (
        log.open("ab") as out,
        (tmp_path / "err").open("wb") as err,
        running([sys.executable, "-c", WAIT], stdout=out, stderr=err) as (process,),
    ):
        found = list(outputs(training(process.pid), "/proc"))
    assert [source.kind for source in found] == ["stdout", "stderr"]
    assert found[0].identity == (log.stat().st_dev, log.stat().st_ino)


def test_outputs_that_are_none(log):
    with running([sys.executable, "-c", WAIT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as (
        process,
    ):
        assert list(outputs(training(process.pid), "/proc")) == []


@pytest.fixture
def pipeline():
    """Start ``python .. | COMMAND | COMMAND ..``; return the first process."""
    with contextlib.ExitStack() as stack:

        def start(*readers):
            processes, reading = [], None
            for command in ([sys.executable, "-c", WAIT], *readers):
                last = command is readers[-1]
                process = subprocess.Popen(
                    command, stdin=reading, stdout=subprocess.DEVNULL if last else subprocess.PIPE
                )
                if reading is not None:
                    reading.close()
                reading = process.stdout
                processes.append(process)
            for process in processes:
                stack.callback(process.wait)
                stack.callback(process.kill)
            return processes[0]

        yield start


def eventually_found(process, *patterns):
    deadline = time.monotonic() + 10
    while not (found := search(training(process.pid), *patterns)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def test_who_reads_the_pipe_writes_the_log(pipeline, log):
    process = pipeline(["tee", "-a", str(log)])
    (source,) = eventually_found(process)
    assert source.kind == "pipe"
    assert source.identity[1] == log.stat().st_ino


def test_several_pipes_in_a_row(pipeline, log):
    process = pipeline(["cat"], ["cat"], ["tee", "-a", str(log)])
    (source,) = eventually_found(process)
    assert source.identity[1] == log.stat().st_ino


def test_a_reader_of_everything_is_not_believed(pipeline, tmp_path):
    """It writes more files than one log: which of them is not known."""
    code = (
        "import sys, time\n"
        "files = [open(f'{sys.argv[1]}/{n}', 'w') for n in range(9)]\n"
        "print(file=open(sys.argv[1] + '/ready', 'w')); time.sleep(60)"
    )
    process = pipeline([sys.executable, "-c", code, str(tmp_path)])
    deadline = time.monotonic() + 10
    while not (tmp_path / "ready").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert search(training(process.pid)) == []


def test_files_that_the_user_names_and_the_job_has_open(log, tmp_path):
    code = f"import time; a = open({str(log)!r}, 'a'); b = open({str(tmp_path / 'other.txt')!r}, 'a'); {WAIT}"
    with running([sys.executable, "-c", code], stdout=subprocess.DEVNULL) as (process,):
        (source,) = eventually_found(process, f"{tmp_path}/*.log")
        assert (source.kind, source.identity[1]) == ("glob", log.stat().st_ino)
        assert search(training(process.pid), f"{tmp_path}/*.json") == []


def test_files_that_the_user_names_by_the_job(tmp_path):
    (tmp_path / "ns_llama").mkdir()
    (tmp_path / "ns_llama" / "train.log").write_text("x")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "train.log").write_text("x")
    with running([sys.executable, "-c", WAIT], stdout=subprocess.DEVNULL) as (process,):
        pattern = f"{tmp_path}/{{job}}/*.log"
        (source,) = search(training(process.pid), pattern, job="ns/llama")
        assert source.place.path == str(tmp_path / "ns_llama" / "train.log")
        for job in ("..", "*", "o?her", "../other", "."):
            assert search(training(process.pid, job), pattern, job=job) == []


def test_another_users_file_is_not_read(tmp_path, log):
    if os.geteuid() != 0:
        pytest.skip("giving files away needs root")
    with running([sys.executable, "-c", WAIT], stdout=subprocess.DEVNULL) as (process,):
        pattern = f"{tmp_path}/*{{job}}*"
        assert len(search(training(process.pid), pattern, job="train")) == 1
        os.chown(log, 12345, 12345)
        assert search(training(process.pid), pattern, job="train") == []


def test_what_srun_writes_on_the_first_host(tmp_path):
    """The rank's output is a pipe to slurmstepd, whose other end is srun's file."""
    srun = tmp_path / "srun"
    srun.symlink_to("/bin/sleep")
    with (tmp_path / "slurm-4711.out").open("wb") as out, contextlib.ExitStack() as stack:
        for job in ("4711", "4712"):
            stack.enter_context(
                running(
                    [str(srun), "60"],
                    stdout=out if job == "4711" else None,
                    stderr=subprocess.DEVNULL,
                    env={"SLURM_JOB_ID": job},
                )
            )
        (process,) = stack.enter_context(running([sys.executable, "-c", WAIT], stdout=subprocess.DEVNULL))
        deadline = time.monotonic() + 10
        while not (found := search(training(process.pid, "4711", slurm_log="/nowhere"), job="4711")):
            assert time.monotonic() < deadline
        assert [source.kind for source in found] == ["slurm"]
        assert found[0].identity[1] == (tmp_path / "slurm-4711.out").stat().st_ino


def test_what_another_user_calls_srun_is_not_believed(tmp_path):
    srun = tmp_path / "srun"
    srun.symlink_to("/bin/sleep")
    with (
        (tmp_path / "forged.out").open("wb") as out,
        running([str(srun), "60"], stdout=out, env={"SLURM_JOB_ID": "4711"}) as (forger,),
        running([sys.executable, "-c", WAIT], stdout=subprocess.DEVNULL) as (process,),
    ):
        mine = training(process.pid, "4711", slurm_log="/nowhere")
        deadline = time.monotonic() + 10
        while not search(mine, job="4711"):  # it is found where the users are the same
            assert time.monotonic() < deadline
        assert os.stat(f"/proc/{forger.pid}").st_uid == mine.user
        assert search(dataclasses.replace(mine, user=12345), job="4711") == []


def test_slurms_own_name_for_it(log):
    with running([sys.executable, "-c", WAIT], stdout=subprocess.DEVNULL) as (process,):
        (source,) = search(training(process.pid, slurm_log=str(log)))
        assert (source.kind, source.holder, source.place.owner) == ("slurm", None, os.getuid())
        assert search(training(process.pid, slurm_log="/proc/self/environ")) == []  # that would be ours


ID = "0123456789abcdef" * 4


@pytest.mark.parametrize("runtime", ["containers", "docker"])
def test_the_log_that_the_runtime_keeps_of_a_container(tmp_path, runtime):
    (tmp_path / "7" / "fd").mkdir(parents=True)
    (tmp_path / "7" / "cgroup").write_text(f"0::/kubepods.slice/cri-containerd-{ID}.scope\n")
    root = tmp_path / "1" / "root"
    pods = root / "var" / "log" / "pods" / "ml_llama_1" / "main"
    pods.mkdir(parents=True)
    (pods / "0.log").write_text("x")
    if runtime == "containers":
        (root / "var" / "log" / "containers").mkdir()
        link = root / "var" / "log" / "containers" / f"llama_ml_main-{ID}.log"
        link.symlink_to("/var/log/pods/ml_llama_1/main/0.log")  # absolute, as the kubelet makes it
    else:
        (root / "var" / "lib" / "docker" / "containers" / ID).mkdir(parents=True)
        (pods / "0.log").rename(root / "var" / "lib" / "docker" / "containers" / ID / f"{ID}-json.log")
    (source,) = search(training(7), proc=tmp_path)
    assert (source.kind, source.found.st_size) == ("container", 1)


def test_processes_that_vanish_are_no_error(tmp_path):
    assert search(training(2**22 + 1)) == []
    assert search(training(7), f"{tmp_path}/*", proc=tmp_path) == []
