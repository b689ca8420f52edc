import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.jobs.identity import Rank, identify, parse_environ

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
