"""Lowest R first; ties by fewest iterations, then id. The worked orderings of one link in the fluid model."""

from fractions import Fraction

import pytest

from controlplane.model import Group, Job, Link
from controlplane.policies import POLICIES, Scope

LINK = Link("S1", 1)


def level_of(jobs, policy="leveller", count=8, scope=Scope.FABRIC):
    groups = [Group(job.id, job.id, (LINK,)) for job in jobs]
    return {job: at[LINK] for job, at in POLICIES[policy](jobs, groups, count, scope).items()}


@pytest.mark.parametrize("scope", Scope)
def test_the_lowest_rate_goes_first(scope):
    jobs = [Job("a", 0.9), Job("b", 0.2), Job("c", 0.5)]
    assert level_of(jobs, count=8, scope=scope) == {"b": 7, "c": 6, "a": 5}
    assert level_of(jobs, count=2, scope=scope) == {"b": 1, "c": 0, "a": 0}
    assert level_of(jobs, count=1, scope=scope) == {"a": 0, "b": 0, "c": 0}


def test_ties_go_to_fewest_iterations_then_to_the_smaller_id():
    jobs = [Job("c", 0.5, 3), Job("b", 0.5, 7), Job("a", 0.5, 7)]
    assert level_of(jobs) == {"c": 7, "a": 6, "b": 5}


def test_intensity_plays_no_part():
    assert level_of([Job("a", 0.5, 1, 9.0), Job("b", 0.4, 1, 0.0)]) == {"b": 7, "a": 6}


def fluid(jobs, policy, horizon, count=8):
    """R per job at ``horizon``, one link of rate 1, levels renewed at every event; exact.

    ``jobs``: id -> (compute, communicate). Strict priority, equal shares within a level.
    """
    left = {job: [Fraction(compute), Fraction(comm)] for job, (compute, comm) in jobs.items()}
    done = dict.fromkeys(jobs, 0)
    now = Fraction(0)
    while now < horizon:
        seen = [
            Job(job, float(done[job] * sum(jobs[job]) / now) if now else 0.0, done[job], intensity(jobs[job]))
            for job in jobs
        ]
        level = level_of(seen, policy, count)
        sending = [job for job, (compute, _) in left.items() if compute == 0]
        top = max((level[job] for job in sending), default=0)
        first = [job for job in sending if level[job] == top]
        speed = {job: Fraction(1, len(first)) for job in first}
        ends = [left[job][1] / speed[job] for job in first] + [c for c, _ in left.values() if c]
        step = min([*ends, horizon - now])
        now += step
        for job, rest in left.items():
            if rest[0]:
                rest[0] -= step
            elif job in speed:
                rest[1] -= step * speed[job]
                if rest[1] == 0:
                    done[job] += 1
                    rest[:] = map(Fraction, jobs[job])
    return {job: done[job] * sum(jobs[job]) / now for job in jobs}


def intensity(job):
    """Crux: computation over communication, for jobs that send at the link's rate."""
    return job[0] / job[1]


PAIR = {"1": (1, 1), "2": (1, 2)}
TRIO = {"1": (1, 2), "2": (1, 2), "3": (2, 1)}


def test_pair_under_lowest_rate_first():
    rates = fluid(PAIR, "leveller", Fraction(36))
    assert rates == {"1": Fraction(30, 36), "2": Fraction(30, 36)}  # the worked example: both 0.8333 at 36
    rates = fluid(PAIR, "leveller", Fraction(2100))
    assert float(rates["1"]) == pytest.approx(6 / 7, abs=0.002)
    assert float(rates["2"]) == pytest.approx(6 / 7, abs=0.002)


def test_pair_under_static_priority():
    rates = fluid(PAIR, "static", Fraction(2100))
    assert float(rates["1"]) == pytest.approx(1.0, abs=0.002)
    assert float(rates["2"]) == pytest.approx(0.75, abs=0.002)


def test_pair_under_flow_fair():
    rates = fluid(PAIR, "fair", Fraction(2100))
    assert float(rates["1"]) == pytest.approx(0.75, abs=0.002)
    assert float(rates["2"]) == pytest.approx(0.75, abs=0.002)


def test_trio_under_lowest_rate_first():
    rates = fluid(TRIO, "leveller", Fraction(3000))
    for job in TRIO:
        assert float(rates[job]) == pytest.approx(0.6, abs=0.004)


def test_trio_under_flow_fair():
    rates = fluid(TRIO, "fair", Fraction(3000))
    assert [float(rates[job]) for job in "123"] == pytest.approx([0.5, 0.5, 2 / 3], abs=0.004)


def test_trio_under_static_priority_starves_job_2():
    rates = fluid(TRIO, "static", Fraction(3000))
    assert float(rates["3"]) == pytest.approx(1.0, abs=0.004)
    assert rates["2"] < Fraction(1, 10)


def test_a_weight_divides_the_rate():
    assert level_of([Job("a", 0.6, weight=2.0), Job("b", 0.4)]) == {"a": 7, "b": 6}


def test_equal_progress_is_a_tie_despite_rounding():
    # A third at weight 1, and two thirds at weight 2, each as floating point comes to it.
    jobs = [Job("b", rate=1 / 3, iterations=4), Job("a", rate=2 * 0.1 / 0.3, iterations=5, weight=2.0)]
    assert jobs[0].rate != jobs[1].rate / jobs[1].weight
    assert level_of(jobs) == level_of(jobs[::-1]) == {"b": 7, "a": 6}
