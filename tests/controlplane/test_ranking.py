"""The profiling level over a policy's levels."""

from controlplane.model import Group, Job, Link
from controlplane.policies import POLICIES, Scope
from controlplane.policies.contention import job_components
from controlplane.ranking import rank, reasons

HERE, THERE = Link("S1", 1), Link("S2", 1)
JOBS = [Job("a", 0.1), Job("b", 0.2), Job("c", 0.3), Job("x", 0.4), Job("y", 0.5)]
GROUPS = [
    Group("a", "a", (HERE,)),
    Group("b", "b", (HERE,)),
    Group("c", "c", (HERE,)),
    Group("x", "x", (THERE,)),
    Group("y", "y", (THERE,)),
]
COMPONENTS = job_components([job.id for job in JOBS], GROUPS)


def levels(profiling, count, scope=Scope.FABRIC, policy="leveller"):
    ranked = rank(POLICIES[policy], JOBS, GROUPS, count, scope, COMPONENTS, frozenset(profiling))
    return {group: next(iter(at.values())) for group, at in ranked.items()}


def test_without_profiling_the_policy_has_all_levels():
    assert levels("", 3) == {"a": 2, "b": 1, "c": 0, "x": 2, "y": 1}


def test_the_profiled_job_is_alone_at_the_top_of_its_component_only():
    for scope in Scope:
        assert levels("c", 3, scope) == {"c": 2, "a": 1, "b": 0, "x": 2, "y": 1}


def test_each_component_has_its_own_profiled_job():
    assert levels("by", 4) == {"b": 3, "a": 2, "c": 1, "y": 3, "x": 2}


def test_two_levels_leave_one_for_the_others():
    assert levels("c", 2) == {"c": 1, "a": 0, "b": 0, "x": 1, "y": 0}


def test_one_level_cannot_profile():
    assert levels("c", 1) == {"a": 0, "b": 0, "c": 0, "x": 0, "y": 0}


def test_even_flow_fair_yields_to_the_profiled_job():
    assert levels("c", 3, policy="fair") == {"c": 2, "a": 0, "b": 0, "x": 0, "y": 0}


def test_reasons_say_who_contends_and_who_is_profiled():
    texts = reasons([*JOBS, Job("alone", 0.25, 5)], COMPONENTS, frozenset("c"), {"x": "its log is odd"})
    assert texts["c"] == "being profiled: alone at the top level; contends with a, b"
    assert texts["a"] == "R 0.100 after 0 iterations; below c, which is being profiled; contends with b, c"
    assert texts["x"] == "R 0.400 after 0 iterations; contends with y; its log is odd"
    assert texts["alone"] == "R 0.250 after 5 iterations; contends with nobody"


def test_reasons_name_four_rivals_and_count_the_others():
    jobs = [Job(name, 0.5) for name in "abcdefg"]
    texts = reasons(jobs, [frozenset("abcdefg")], {"b"}, {})
    assert texts["a"].endswith("below b, which is being profiled; contends with b, c, d, e and 2 more")
    assert texts["g"].endswith("contends with a, b, c, d and 2 more")
    assert texts["b"] == "being profiled: alone at the top level; contends with a, c, d, e and 2 more"
