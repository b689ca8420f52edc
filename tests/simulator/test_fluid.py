"""The worked examples of one link, exactly."""

from fractions import Fraction

import pytest

from controlplane.model import Link
from controlplane.policies import POLICIES, Scope
from simulator.fluid import Communicate, Compute, FluidJob, simulate

LINK = (Link("S1", 1),)


def job(name, compute, communicate, *paths, intensity=None):
    return FluidJob(
        name,
        (Compute(compute), Communicate(communicate, paths or (LINK,))),
        compute + communicate,
        compute / communicate if intensity is None else intensity,
    )


PAIR = [job("job1", 1, 1), job("job2", 1, 2)]
TRIO = [job("job1", 1, 2), job("job2", 1, 2), job("job3", 2, 1)]


def long_run(jobs, policy, horizon=2000, **options):
    result = simulate(jobs, POLICIES[policy], horizon, **options)
    return [result.long_run(job.id) for job in jobs]


def test_pair_flow_fair():
    assert long_run(PAIR, "fair") == [Fraction(3, 4)] * 2


def test_pair_static_first_job_never_waits():
    assert long_run(PAIR, "static") == [1, Fraction(3, 4)]


def test_pair_lowest_rate_first_reaches_six_sevenths_in_cycles_of_seven():
    result = simulate(PAIR, POLICIES["leveller"], 700)
    assert result.rate("job1", 36) == result.rate("job2", 36) == Fraction(5, 6)
    first, second = result.ends["job1"], result.ends["job2"]
    assert {later - end for end, later in zip(first[-90:], first[-87:], strict=False)} == {7}
    assert {later - end for end, later in zip(second[-60:], second[-58:], strict=False)} == {7}


def test_pair_lazy_updates_have_cycles_of_twenty_eight():
    result = simulate(PAIR, POLICIES["leveller"], 2800, tau=4)
    first, second = result.ends["job1"], result.ends["job2"]
    assert {later - end for end, later in zip(first[-200:], first[-188:], strict=False)} == {28}
    assert {later - end for end, later in zip(second[-150:], second[-142:], strict=False)} == {28}
    assert len({later - end for end, later in zip(first[-200:], first[-197:], strict=False)}) > 1  # not of 7


def test_trio_flow_fair():
    assert long_run(TRIO, "fair") == [Fraction(1, 2), Fraction(1, 2), Fraction(2, 3)]


def test_trio_lowest_rate_first_gives_each_three_fifths():
    assert long_run(TRIO, "leveller") == [Fraction(3, 5)] * 3


def test_trio_intensity_order_starves_job2():
    result = simulate(TRIO, POLICIES["static"], 600)
    assert result.long_run("job3") == 1
    assert len(result.ends["job2"]) <= 1


def test_max_min_within_a_level_over_two_links():
    one, two = Link("S1", 1), Link("S2", 1)
    jobs = [job("both", 1, 1, (one, two)), job("first", 1, 1, (one,)), job("second", 1, 1, (two,))]
    result = simulate(jobs, POLICIES["fair"], 3, capacity={one: 1, two: Fraction(1, 2)})
    # Link two gives each of its flows a quarter, so 'first' finds three quarters left on link one.
    assert result.ends["first"][0] == 1 + Fraction(4, 3)
    assert not result.ends["both"]


def test_scope_port_ranks_only_what_meets():
    one, two = Link("S1", 1), Link("S2", 1)
    jobs = [
        job("a", 1, 1, (one,), intensity=3),
        job("b", 1, 1, (one, two), intensity=2),
        job("c", 1, 1, (two,), intensity=1),
    ]
    for scope in Scope:
        result = simulate(jobs, POLICIES["static"], 10, scope=scope, count=2)
        assert result.ends["a"] == [2, 4, 6, 8, 10]
    port = simulate(jobs, POLICIES["static"], 10, scope=Scope.PORT, count=2)
    assert port.ends["b"][0] == 3


def test_a_job_that_takes_no_time_is_refused():
    with pytest.raises(ValueError, match="job idle has no phase that takes time"):
        simulate([job("idle", 0, 0, intensity=1)], POLICIES["fair"], 1)
