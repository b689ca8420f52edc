import math

import pytest

from hostagent.flows.flow import HALF_LIFE_NS, Flow


def recent(flow, now_ns):
    return 2 ** (flow.weight - now_ns / HALF_LIFE_NS)


def test_what_was_long_ago_counts_for_less():
    flow = Flow("job1", 1, 0)
    assert (flow.carried, flow.weight) == (0, -math.inf)
    flow.carry(1000, 0)
    assert recent(flow, HALF_LIFE_NS) == pytest.approx(500)
    flow.carry(1600, HALF_LIFE_NS)
    assert recent(flow, HALF_LIFE_NS) == pytest.approx(1100)
    assert recent(flow, 2 * HALF_LIFE_NS) == pytest.approx(550)
    flow.carry(1600, 2 * HALF_LIFE_NS)
    assert recent(flow, 2 * HALF_LIFE_NS) == pytest.approx(550)


def test_years_of_it_neither_overflow_nor_lose_what_is_new():
    flow, year_ns = Flow("job1", 1, 0), 365 * 86_400 * 10**9
    flow.carry(10**9, 0)
    flow.carry(2 * 10**9, 10 * year_ns)
    assert flow.carried == 2 * 10**9
    assert recent(flow, 10 * year_ns) == pytest.approx(10**9, rel=1e-6)
