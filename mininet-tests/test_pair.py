"""Two jobs, (1, 1) and (1, 2), on one 100 Mbit/s bottleneck: measured R, from the second minute on."""

import pytest


def test_flow_fair_is_three_quarters_each(measure):
    for job in measure("pair", "fair").jobs:
        assert job.rate == pytest.approx(0.75, abs=0.04)
        assert job.theory == 0.75


def test_static_gives_the_first_job_all_it_wants(measure):
    first, second = measure("pair", "static").jobs
    assert first.rate >= 0.95
    assert second.rate == pytest.approx(0.75, abs=0.05)


def test_lowest_rate_first_lifts_both(measure):
    outcome = measure("pair", "leveller")
    assert outcome.minimum >= 0.82
    assert outcome.jobs[0].theory == pytest.approx(6 / 7)
