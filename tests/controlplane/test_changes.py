"""What changed: per group, per job, and in the log's line."""

from controlplane.changes import InForce, by_job, log_line, written
from controlplane.model import Group, Link

A, B = Link("S1", 1), Link("S2", 1)
ONE, TWO, THREE = Group("1", "x", (A, B)), Group("2", "x", (A,)), Group("3", "y", (A,))
REASONS = {"x": "R 0.100", "y": "R 0.200"}
GROUPS = (ONE, TWO, THREE)
FIRST = {"1": {A: 2, B: 2}, "2": {A: 2}, "3": {A: 1}}


def test_everything_is_new_at_first_and_only_what_differs_later():
    force = InForce()
    first = force.follow(GROUPS, FIRST, REASONS, 5)
    assert [(change.group, change.before, change.after) for change in first] == [
        (ONE, {}, {A: 2, B: 2}),
        (TWO, {}, {A: 2}),
        (THREE, {}, {A: 1}),
    ]
    later = force.follow(GROUPS, {**FIRST, "2": {A: 0}}, REASONS, 6)
    assert [(change.group, change.before, change.after, change.reason) for change in later] == [
        (TWO, {A: 2}, {A: 0}, "R 0.100")
    ]
    assert force.follow(GROUPS, {**FIRST, "2": {A: 0}}, REASONS, 7) == []


def test_the_last_change_of_a_job_stays_until_it_has_no_groups():
    force = InForce()
    force.follow(GROUPS, FIRST, REASONS, 5)
    force.follow(GROUPS, {**FIRST, "3": {A: 0}}, REASONS, 6)
    assert {job: (change.now_ns, change.before, change.after) for job, change in force.last.items()} == {
        "x": (5, "none", "2"),
        "y": (6, "1", "0"),
    }
    force.follow((ONE,), FIRST, REASONS, 7)
    assert set(force.last) == {"x"}


def test_a_number_that_another_group_has_now_is_new():
    force = InForce()
    force.follow((ONE,), {"1": {A: 2, B: 2}}, REASONS, 5)
    (change,) = force.follow((Group("1", "y", (A, B)),), {"1": {A: 2, B: 2}}, REASONS, 6)
    assert (change.group.job, change.before) == ("y", {})


def test_the_line_in_the_log_counts_all_and_tells_of_some():
    changes = by_job(InForce().follow(GROUPS, FIRST, REASONS, 5), 5)
    assert log_line(changes) == {
        "jobs": 2,
        "groups": 3,
        "changed": {"x": "none -> 2: R 0.100", "y": "none -> 1: R 0.200"},
    }
    assert log_line(changes, 1) == {
        "jobs": 2, "groups": 3, "changed": {"x": "none -> 2: R 0.100"}, "more": 1,
    }  # fmt: skip


def test_levels_in_writing():
    assert (written({}), written({A: 3, B: 3}), written({A: 3, B: 1})) == ("none", "3", "S1:1=3, S2:1=1")
