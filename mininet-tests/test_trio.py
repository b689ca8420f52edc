"""Three jobs, (1, 2), (1, 2) and (2, 1), on one 100 Mbit/s bottleneck."""

import pytest


def test_flow_fair_halves_the_slowest(measure):
    # Nothing has to settle under flow-fair, and the jobs fall out of step in time: see trio.toml.
    assert measure("trio", "fair", warmup=20).minimum == pytest.approx(0.5, abs=0.04)


def test_lowest_rate_first_lifts_the_slowest(measure):
    assert measure("trio", "leveller").minimum >= 0.56


def test_intensity_order_starves_job2(measure):
    first, second, third = measure("trio", "static").jobs
    assert third.rate >= 0.95
    assert second.rate < 0.3 < first.rate
