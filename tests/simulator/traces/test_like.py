import numpy as np
import pytest

from simulator.traces.like import draw


def test_the_published_marginals_come_out():
    jobs = [job for job, _ in draw(20_000, 1, 0)]
    minutes = np.array([job.duration for job in jobs]) / 60
    for quantile, published in ((0.5, 4), (0.9, 165), (0.99, 3288)):
        assert np.quantile(minutes, quantile) == pytest.approx(published, rel=0.2)
    assert 1 <= minutes.min() < minutes.max() <= 20_631
    gpus = np.array([job.gpus for job in jobs])
    for least, published in ((8, 2122), (64, 376), (128, 206)):
        assert (gpus >= least).mean() == pytest.approx(published / 2816, abs=0.01)
    assert gpus.max() == 744


def test_the_seed_decides_and_small_jobs_can_be_left_out():
    assert list(draw(50, 8, 1)) == list(draw(50, 8, 1)) != list(draw(50, 8, 2))
    assert min(job.gpus for job, _ in draw(500, 8, 1)) == 8
    assert {job.gpus for job, _ in draw(20, 744, 1)} == {744}


def test_it_calls_itself_what_it_is():
    assert next(draw(1, 8, 0))[0].id == "lingjun-like-1"
