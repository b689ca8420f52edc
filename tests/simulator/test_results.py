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


def at(number, start, end):
    return JobResult(number, f"job{number}", 0.5, 10, start, end, 1, 1.0)


def test_recovery_is_watched_until_the_next_job_comes_or_goes():
    # Job 0 gets half of its R from 10 on; what came at 20, or went at 30, would be another story.
    history = [(float(t), {0: min(t, 10 + (t - 10) / 2) / t, 1: 0.5}) for t in range(1, 41)]
    jobs = [at(0, 0.0, 40.0), at(1, 10.0, 40.0)]
    gone, later = at(2, 0.0, 9.0), at(2, 20.0, 40.0)

    def settled(*more, newcomer="job1", history=history):
        found = Result("fair", [*jobs, *more], 0, 7, 0.1, history, (), newcomer).as_json()
        return found.get("settled_R"), found.get("recovery_s")

    assert settled() == settled(gone) == settled(later) == (pytest.approx(0.5), 0.0)
    starving = [(t, {0: rates[0], 1: 0.0 if t > 25 else 0.5}) for t, rates in history]
    assert settled(history=starving)[0] == pytest.approx(7.5 / 30)
    assert settled(later, history=starving)[0] == pytest.approx(0.5)
    assert settled(newcomer=None) == settled(newcomer="job9") == (None, None)


def test_nothing_ran():
    result = Result("fair", [], 3, 0, 0.1)
    assert (result.min_rate, result.average_rate, result.jain, result.gpu_utilization) == (0, 0, 0, 0)
