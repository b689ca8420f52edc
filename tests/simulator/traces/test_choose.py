from pathlib import Path

import pytest

from leveller.errors import UserError
from simulator.fabric import Sizes, clos
from simulator.traces.choose import notes, usable
from simulator.traces.sections import LingjunLike, LingjunPeak, LingjunTrace

DATA = Path(__file__).parents[2] / "data"
FABRIC = clos([[["hostA", "hostB"], ["hostC"]]], Sizes(1, 0, 8, 1, 100, 100, 100))


def trace(**keys):
    return LingjunTrace(
        kind="lingjun", jobs=DATA / "lingjun_job.csv", workers=DATA / "lingjun_worker.csv", **keys
    )


def test_what_fits():
    jobs, left = usable(trace(), FABRIC)
    assert [job.id for job in jobs] == ["made-a", "made-b"]
    assert left == {"of less than min_gpus = 8 GPUs": 1}
    jobs, left = usable(trace(placed=True, min_gpus=1), FABRIC)
    assert [job.id for job in jobs] == ["made-a"]
    assert left == {"on hosts that the fabric does not have": 2}


def test_everything_left_out_is_told():
    of_jobs, of_workers, chosen = notes(trace(), FABRIC)
    assert "3 of 14 rows used; skipped: 1 running before submitted (first: line 4)" in of_jobs
    assert "7 of 9 rows used" in of_workers
    assert chosen == "workload: 2 jobs; left out: 1 of less than min_gpus = 8 GPUs"
    (peak,) = notes(LingjunPeak(kind="lingjun-peak"), FABRIC)
    assert peak == "workload: 14 jobs; left out: 25 of more GPUs than the fabric's 24"
    assert notes(LingjunLike(kind="lingjun-like", jobs=5), FABRIC) == []


def test_nothing_is_left():
    with pytest.raises(UserError, match="none of the trace's jobs is left"):
        notes(trace(min_gpus=64), FABRIC)
