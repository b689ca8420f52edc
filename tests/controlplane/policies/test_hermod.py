import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.model import Group, Link
from controlplane.policies import Scope
from controlplane.policies.hermod import Key, Kind, levels

LINK = Link("S1", 1)


def coflow(name, job, *key):
    return Group(name, job, (LINK,), key=Key(*key))


def found(groups, count, scope=Scope.FABRIC):
    return {name: on[LINK] for name, on in levels([], groups, count, scope).items()}


def test_micro_batch_then_kind_then_layer():
    groups = [
        coflow("dp1", "a", 0, Kind.DP, 1),
        coflow("dp0", "a", 0, Kind.DP, 0),
        coflow("pp", "a", 0, Kind.PP, 7),
        coflow("ep", "a", 1, Kind.EP, 0),
        coflow("late", "a", 1, Kind.DP, 0),
    ]
    assert found(groups, 8) == {"pp": 7, "dp0": 6, "dp1": 5, "ep": 4, "late": 3}
    assert found(groups, 3) == {"pp": 2, "dp0": 1, "dp1": 0, "ep": 0, "late": 0}


def test_equal_keys_tie_and_other_jobs_play_no_part():
    groups = [
        coflow("pp", "a", 0, Kind.PP, 2),
        coflow("ep", "a", 0, Kind.EP, 2),
        coflow("dp", "a", 0, Kind.DP, 2),
        coflow("other", "b", 5, Kind.DP, 9),
    ]
    for scope in Scope:
        assert found(groups, 4, scope) == {"pp": 3, "ep": 3, "dp": 2, "other": 3}


keys = st.tuples(st.integers(0, 2), st.sampled_from(Kind), st.integers(0, 2))


@given(st.lists(st.tuples(st.sampled_from("ab"), keys), max_size=12), st.integers(1, 8))
def test_no_inversion_inside_a_job(rows, count):
    groups = [coflow(str(number), job, *key) for number, (job, key) in enumerate(rows)]
    level = found(groups, count)
    for one in groups:
        assert 0 <= level[one.id] < count
        for other in groups:
            if one.job == other.job and one.key < other.key:
                assert level[one.id] > level[other.id] or level[other.id] == 0
            if one.job == other.job and one.key == other.key:
                assert level[one.id] == level[other.id]


def test_no_levels_is_an_error():
    with pytest.raises(ValueError, match="count = 0"):
        levels([], [], 0, Scope.FABRIC)
