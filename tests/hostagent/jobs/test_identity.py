import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.jobs.identity import (
    Rank,
    identify,
    identify_ray,
    is_lightning_child,
    launches,
    parse_command,
    parse_environ,
)

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "10.0.1.1", "MASTER_PORT": "29500"}


@pytest.mark.parametrize(
    ("more", "job"),
    [
        ({}, "10.0.1.1:29500"),
        ({"TORCHELASTIC_RUN_ID": "tenant-a"}, "tenant-a"),
        ({"TORCHELASTIC_RUN_ID": "none"}, "10.0.1.1:29500"),  # torchrun without --rdzv-id
        ({"SLURM_JOB_ID": "4711", "TORCHELASTIC_RUN_ID": "tenant-a"}, "4711"),
        ({"MASTER_ADDR": "localhost"}, "h1/localhost:29500"),
        ({"MASTER_ADDR": "127.0.0.1"}, "h1/127.0.0.1:29500"),
        ({"MASTER_ADDR": "::1"}, "h1/::1:29500"),
        ({"MASTER_ADDR": "fd00::1"}, "fd00::1:29500"),
        ({"SLURM_JOB_ID": "x" * 129}, "10.0.1.1:29500"),
        ({"SLURM_JOB_ID": "a b"}, "10.0.1.1:29500"),
        ({"SLURM_JOB_ID": "evil\n"}, "10.0.1.1:29500"),
        ({"SLURM_JOB_ID": ""}, "10.0.1.1:29500"),
    ],
)
def test_job_id(more, job):
    assert identify({**TORCHRUN, **more}, "h1") == Rank(job, 3, 8)


@pytest.mark.parametrize(
    "more",
    [
        {"RANK": "8"},
        {"RANK": "-1"},
        {"RANK": "one"},
        {"RANK": ""},
        {"WORLD_SIZE": "0"},
        {"WORLD_SIZE": "9999999"},
        {"WORLD_SIZE": "9" * 5000},
        {"MASTER_PORT": "0"},
        {"MASTER_PORT": "65536"},
        {"MASTER_ADDR": ""},
        {"MASTER_ADDR": "a" * 200},
    ],
)
def test_not_a_training_process(more):
    assert identify({**TORCHRUN, **more}, "h1") is None


@pytest.mark.parametrize("missing", sorted(TORCHRUN))
def test_every_variable_is_needed(missing):
    assert identify({name: value for name, value in TORCHRUN.items() if name != missing}, "h1") is None


PYTHON = ["/usr/bin/python3.11", "train.py", "--lr", "0.1"]
SLURM = {"SLURM_JOB_ID": "4711", "SLURM_PROCID": "3", "SLURM_NTASKS": "8"}
OPENMPI = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8", "PMIX_NAMESPACE": "prterun-n1-77@1"}


@pytest.mark.parametrize(
    ("environ", "rank"),
    [
        (SLURM, Rank("4711", 3, 8)),
        ({**SLURM, "SLURM_NTASKS": "", "SLURM_STEP_NUM_TASKS": "8"}, Rank("4711", 3, 8)),
        (OPENMPI, Rank("mpi/prterun-n1-77@1", 3, 8)),
        ({**OPENMPI, "PMIX_NAMESPACE": "", "OMPI_MCA_ess_base_jobid": "99"}, Rank("mpi/99", 3, 8)),
        ({**OPENMPI, "SLURM_JOB_ID": "4711"}, Rank("4711", 3, 8)),
        (
            {"PMI_RANK": "3", "PMI_SIZE": "8", "MASTER_ADDR": "n1", "MASTER_PORT": "29500"},
            Rank("n1:29500", 3, 8),
        ),
        ({"PMI_RANK": "3", "PMI_SIZE": "8"}, None),  # nothing that is the same on every host
        ({**SLURM, "RANK": "30", "WORLD_SIZE": "64"}, Rank("4711", 30, 64)),  # torchrun under srun
    ],
)
def test_ranks_of_other_starters(environ, rank):
    assert identify(environ, "h1", PYTHON) == rank


@pytest.mark.parametrize(
    "command", [[], ["bash", "train.sh"], ["/opt/lammps"], ["srun", "python", "train.py"], ["tee", "log"]]
)
@pytest.mark.parametrize("environ", [SLURM, OPENMPI])
def test_what_they_start_is_training_only_where_it_is_python(environ, command):
    assert identify(environ, "h1", command) is None


@pytest.mark.parametrize(
    "command",
    [
        ["/usr/bin/python3", "/opt/venv/bin/torchrun", "--nproc-per-node", "8", "train.py"],
        ["torchrun", "train.py"],
        ["python", "-m", "torch.distributed.run", "train.py"],
        ["python", "-u", "-m", "torch.distributed.launch", "train.py"],
        ["python", "-u", "-m", "deepspeed.launcher.launch", "--world_info=x", "train.py"],
        ["python", "/usr/bin/deepspeed", "train.py"],
        ["python", "/usr/bin/accelerate", "launch", "train.py"],
        ["mpirun", "-n", "8", "python", "train.py"],
    ],
)
def test_a_launcher_is_no_rank_even_with_a_pods_environment(command):
    assert launches(command)
    assert identify({**TORCHRUN, **SLURM}, "h1", command) is None


@pytest.mark.parametrize(
    "command",
    [PYTHON, ["python", "train.py", "torchrun"], ["python", "-m", "megatron.train"], ["python"], []],
)
def test_a_rank_is_no_launcher(command):
    assert not launches(command)


def test_labels_of_the_pod_name_the_job_on_every_host():
    labels = {"jobset.sigs.k8s.io/jobset-name": "llama", "namespace": "ml"}
    # The same names and ports in two namespaces are two jobs.
    environ = {**TORCHRUN, "MASTER_ADDR": "llama-node-0-0.llama", "TORCHELASTIC_RUN_ID": "1"}
    assert identify(environ, "h1", PYTHON, labels) == Rank("ml/llama", 3, 8)
    assert identify(environ, "h2", PYTHON, {**labels, "namespace": "qa"}) == Rank("qa/llama", 3, 8)


def test_ranks_that_lightning_starts():
    environ = {**TORCHRUN, "LOCAL_RANK": "2", "NODE_RANK": "0"}
    del environ["RANK"]
    assert identify(environ, "h1", PYTHON) == Rank("10.0.1.1:29500", 2, 8)
    assert is_lightning_child(environ)
    assert not is_lightning_child({**environ, "RANK": "2"})


@pytest.mark.parametrize(
    ("command", "parent", "rank"),
    [
        (["ray::RayTrainWorker._execute"], ["raylet", "--gcs-address=h:1"], Rank("ray/h:1/0100", 77, 0)),
        (["ray::_RayTrainWorker__execute"], ["raylet", "--gcs-address=h:1"], Rank("ray/h:1/0100", 77, 0)),
        (["ray::IDLE"], ["raylet", "--gcs-address=10.0.0.1:6379"], None),
        (["ray::RayTrainWorker"], ["python"], None),
        ([], [], None),
    ],
)  # fmt: skip
def test_ray_workers(command, parent, rank):
    assert identify_ray({"RAY_JOB_ID": "0100"}, command, parent, 77) == rank


def test_command_line_is_split():
    assert parse_command(b"python\0train.py\0--x\0\0") == ["python", "train.py", "--x"]
    assert parse_command(b"") == [""]


def test_environ_is_read_as_getenv_would():
    data = b"RANK=1\0EMPTY=\0RANK=2\0nonsense\0X=a=b\0BAD=\xff\0"
    assert parse_environ(data) == {"RANK": "1", "EMPTY": "", "X": "a=b", "BAD": "\ufffd"}


@given(st.binary())
def test_any_environ(data):
    rank = identify(parse_environ(data + b"\0RANK=0\0WORLD_SIZE=1\0"), "h1")
    assert rank is None or rank.job.isprintable()


@given(st.dictionaries(st.sampled_from([*TORCHRUN, "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID"]), st.text()))
def test_whatever_the_variables_say(environ):
    rank = identify({**TORCHRUN, **environ}, "h1")
    if rank is not None:
        assert 0 <= rank.rank < rank.world_size
        assert 0 < len(rank.job) <= 128
        assert rank.job.isprintable()
