import pytest

from simulator.results import JobResult, Result


def job(rate, gpus=1, iterations=10, compute_s=1.0):
    return JobResult(0, "a", rate, iterations, 0.0, 20.0, gpus, compute_s)


def test_figures():
    result = Result("fair", [job(0.5, gpus=1, iterations=10), job(1.0, gpus=3, iterations=20)], 0, 7, 0.1)
    assert (result.min_rate, result.average_rate) == (0.5, 0.75)
    assert result.jain == pytest.approx(1.5**2 / (2 * 1.25))
    assert result.gpu_utilization == pytest.approx((10 + 60) / 80)


def test_json_has_these_keys():
    assert Result("fair", [job(0.5)], 0, 7, 0.1).as_json() == {
        "policy": "fair",
        "jobs": [{"id": "a", "R": 0.5, "iterations": 10}],
        "min_R": 0.5,
        "avg_R": 0.5,
        "jain": 1.0,
        "gpu_utilization": 0.5,
        "events": 7,
        "wall_s": 0.1,
    }


def test_nothing_ran():
    result = Result("fair", [], 3, 0, 0.1)
    assert (result.min_rate, result.average_rate, result.jain, result.gpu_utilization) == (0, 0, 0, 0)
