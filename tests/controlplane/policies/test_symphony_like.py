import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.model import Group, Link
from controlplane.policies import Scope
from controlplane.policies.symphony_like import THRESHOLD, levels

LINK = Link("S1", 1)


def found(rows, count=8, scope=Scope.FABRIC):
    groups = [Group(str(n), job, (LINK,), sent=sent) for n, (job, sent) in enumerate(rows)]
    return [on[LINK] for on in levels([], groups, count, scope).values()]


def test_who_is_ahead_of_the_slowest_of_its_job_gives_way():
    assert THRESHOLD == 0.1
    rows = [("a", 0.5), ("a", 0.55), ("a", 0.61), ("b", 0.9), ("b", None), ("c", None)]
    for scope in Scope:
        assert found(rows, scope=scope) == [1, 1, 0, 1, 1, 1]
    assert found(rows, count=1) == [0] * 6


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.floats(0, 1)), max_size=9))
def test_a_jobs_slowest_never_gives_way_and_none_is_held_for_another_job(rows):
    level = found(rows)
    for job in "abc":
        sent = [one for name, one in rows if name == job and one is not None]
        for (name, one), at in zip(rows, level, strict=True):
            if name == job:
                assert at == (0 if one is not None and one - min(sent) > THRESHOLD else 1)


def test_no_levels_is_an_error():
    with pytest.raises(ValueError, match="count = 0"):
        levels([], [], 0, Scope.FABRIC)
