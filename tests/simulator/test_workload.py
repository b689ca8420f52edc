import pytest
from pydantic import ValidationError

from simulator.workload import Workload, draw


def test_draws_keep_to_their_bounds():
    workload = Workload(jobs=500, gpus=[8, 64], compute_s=(0.1, 0.2), iterations=(10, 12), all_to_all=0.5)
    jobs = list(draw(workload, 1))
    assert {job.gpus for job in jobs} == {8, 64}
    assert {job.iterations for job in jobs} == {10, 11, 12}
    assert all(0.1 <= job.compute_s <= 0.2 and 1e9 <= job.bytes <= 2e10 for job in jobs)
    assert 200 < sum(job.all_to_all for job in jobs) < 300
    assert 0.9 < sum(job.gap for job in jobs) / 500 < 1.1


def test_the_seed_decides():
    workload = Workload(jobs=5)
    assert list(draw(workload, 1)) == list(draw(workload, 1))
    assert list(draw(workload, 1)) != list(draw(workload, 2))


def test_bounds_in_the_wrong_order():
    with pytest.raises(ValidationError, match="put the smaller one first"):
        Workload(jobs=1, compute_s=(2, 1))
