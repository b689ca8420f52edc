from pathlib import Path

import pytest

from leveller.errors import UserError
from simulator.traces.acme import read

DATA = Path(__file__).parents[2] / "data"


def test_kalos():
    trace = read(DATA / "acme_kalos.csv")
    second, first = trace.jobs
    # Kalos' own duration counts from the submission: it is not used.
    assert (first.id, first.gpus, first.duration, first.model) == ("made-1", 64, 600, "Pretrain")
    assert (second.id, first.start - second.start) == ("made-2", 58)
    assert trace.reports[0].skipped == {
        "without GPUs": [1, 4],
        "never ran": [1, 5],
        "ended before or as they started": [1, 6],
        "with a gpu_num that is no number": [1, 7],
        "repeat a job_id": [1, 8],
    }


def test_seren():
    trace = read(DATA / "acme_seren.csv")
    assert [(job.id, job.gpus, job.duration) for job in trace.jobs] == [("101", 8, 120), ("102", 16, 1800)]
    assert trace.reports[0].skipped == {"started before submitted": [1, 4]}


def test_another_file():
    with pytest.raises(UserError, match="lacks the column job_id"):
        read(DATA / "lingjun_topo.csv")
