from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.model import Group, Job, Link
from controlplane.policies import Scope, crux

LINK = (Link("S1", 1),)


def job(name, compute, comm, gpus=1):
    return Job(name, intensity=gpus * compute / comm, compute_s=compute, comm_s=comm)


def test_the_papers_pair_sends_what_it_says_and_k_is_one_and_a_half():
    small, large = job("small", 1, 1), job("large", 2, 2)
    assert 12 * crux.sent(small, small) == pytest.approx(6)
    assert 12 * crux.sent(small, large) == pytest.approx(3)
    assert 12 * crux.sent(large, small) == pytest.approx(4)
    assert 12 * crux.sent(large, large) == pytest.approx(6)
    assert crux.correction(small, large) == pytest.approx(1.5)
    assert crux.priorities([small, large]) == pytest.approx({"small": 1.5, "large": 1})


def test_unknown_times_leave_the_intensity():
    assert crux.priorities([Job("a", intensity=3), job("b", 1, 1)]) == {"a": 3, "b": 1}


def test_trio_order():
    # By intensity job 3 goes first; jobs 1 and 2 tie and the smaller id wins.
    jobs = [job("job1", 1, 2), job("job2", 1, 2), job("job3", 2, 1)]
    groups = [Group(one.id, one.id, LINK) for one in jobs]
    for scope in Scope:
        found = crux.levels(jobs, groups, 8, scope)
        levels = [found[name][LINK[0]] for name in ("job3", "job1", "job2")]
        assert levels == sorted(levels, reverse=True)
        assert len(set(levels)) == 3


def test_two_levels_cut_the_heaviest_edges():
    # a beats b beats c in pairs on different links: the best cut of weights 9 and 4 is after a.
    order, priority = ["a", "b", "c"], {"a": 9.0, "b": 4.0, "c": 1.0}
    assert crux.compress(order, priority, {("a", "b"), ("b", "c")}, 2) == {"a": 1, "b": 0, "c": 0}
    # With the second edge the heavier, after b.
    priority = {"a": 9.0, "b": 9.5, "c": 1.0}
    assert crux.compress(order, priority, {("a", "b"), ("b", "c")}, 2) == {"a": 1, "b": 1, "c": 0}


def test_another_topological_order_cuts_more_than_the_priorities_own():
    # Pairs (a, b) and (c, d) by priority a, b, c, d: no one cut of that order splits both, that of a, c, b, d
    # does.
    order, priority = ["a", "b", "c", "d"], {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}
    assert crux.compress(order, priority, {("a", "b"), ("c", "d")}, 2) == {"a": 1, "b": 0, "c": 1, "d": 0}


@given(st.lists(st.floats(0, 10), min_size=1, max_size=6), st.data())
def test_levels_never_contradict_a_priority_and_cut_as_much_as_any_of_the_own_order(values, data):
    order = [f"job{n}" for n in range(len(values))]
    priority = dict(zip(order, sorted(values, reverse=True), strict=True))
    possible = list(combinations(order, 2))
    pairs = set(data.draw(st.lists(st.sampled_from(possible), unique=True))) if possible else set()
    count = data.draw(st.integers(1, 4))
    level = crux.compress(order, priority, pairs, count)
    assert set(level) == set(order)
    assert all(0 <= one < count for one in level.values())
    assert all(level[high] >= level[low] for high, low in pairs)

    def weight(found):
        return sum(priority[high] for high, low in pairs if found[high] > found[low])

    def cuts(start, segments):
        if segments == 1:
            yield dict.fromkeys(order[start:], 0)
            return
        for end in range(start, len(order) + 1):
            for rest in cuts(end, segments - 1):
                yield dict.fromkeys(order[start:end], segments - 1) | rest

    assert weight(level) >= max(map(weight, cuts(0, count))) - 1e-9


def test_bad_calls():
    with pytest.raises(ValueError, match="at least one level"):
        crux.levels([job("a", 1, 1)], [], 0, Scope.FABRIC)
    with pytest.raises(ValueError, match="'b' is not among the jobs"):
        crux.levels([job("a", 1, 1)], [Group("1", "b", LINK)], 2, Scope.FABRIC)


def test_intense_jobs_choose_the_least_congested_path_first():
    up = [("up1", "down1"), ("up2", "down2")]
    jobs = [Job("low", intensity=1), Job("high", intensity=5)]
    demands = [
        crux.Demand("low", up, 3.0),
        crux.Demand("high", up, 2.0),
        crux.Demand("high", up, 1.0),
        crux.Demand("low", [("other",)], 1.0),
    ]
    # high takes the first, then the second; low finds 2 on the first and 1 on the second.
    assert crux.choose_paths(jobs, demands) == [1, 0, 1, 0]
    with pytest.raises(ValueError, match="job low has a connection without a candidate path"):
        crux.choose_paths(jobs, [crux.Demand("low", [], 1.0)])
