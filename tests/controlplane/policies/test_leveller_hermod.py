import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.model import Group, Job, Link
from controlplane.policies import Scope, leveller, leveller_hermod
from controlplane.policies.hermod import Key

HERE, THERE = Link("S1", 1), Link("S2", 1)
JOBS = [Job("a", 0.1), Job("b", 0.2), Job("c", 0.3)]


def coflow(name, job, layer, *path):
    return Group(name, job, path or (HERE,), key=Key(layer=layer))


def found(groups, count, scope=Scope.FABRIC):
    levels = leveller_hermod.levels(JOBS, groups, count, scope)
    return {name: list(on.values()) for name, on in levels.items()}


def test_spare_levels_go_to_a_jobs_own_coflows():
    groups = [coflow(f"{job}{layer}", job, layer) for job in "ab" for layer in range(3)]
    # Two jobs, so two blocks of K // 2.
    assert found(groups, 8) == {"a0": [7], "a1": [6], "a2": [5], "b0": [3], "b1": [2], "b2": [1]}
    assert found(groups, 5) == {"a0": [4], "a1": [3], "a2": [3], "b0": [2], "b1": [1], "b2": [1]}
    assert found(groups, 3) == {"a0": [2], "a1": [2], "a2": [2], "b0": [1], "b1": [1], "b2": [1]}


def test_where_a_job_is_alone_all_levels_are_its_own():
    groups = [
        coflow("a0", "a", 0),
        coflow("a1", "a", 1),
        coflow("b", "b", 0, THERE),
        coflow("c", "c", 0, THERE),
    ]
    assert found(groups, 4, Scope.FABRIC) == {"a0": [3], "a1": [2], "b": [3], "c": [1]}
    assert found(groups, 4, Scope.PORT) == {"a0": [3], "a1": [2], "b": [3], "c": [1]}
    assert found([*groups, coflow("d", "a", 2, THERE)], 4, Scope.PORT)["a1"] == [2]


groups = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.sampled_from([(HERE,), (THERE,), (HERE, THERE)])),
    max_size=9,
).map(lambda rows: [coflow(str(n), job, layer, *path) for n, (job, layer, path) in enumerate(rows)])


@given(groups, st.integers(1, 9), st.sampled_from(list(Scope)))
def test_levellers_order_is_kept_and_then_the_keys(groups, count, scope):
    plain = leveller.levels(JOBS, groups, count, scope)
    fine = leveller_hermod.levels(JOBS, groups, count, scope)
    for one in groups:
        assert all(0 <= level < count for level in fine[one.id].values())
        if scope is Scope.FABRIC:
            assert len(set(fine[one.id].values())) == 1
        for other in groups:
            for link in set(one.path) & set(other.path):
                if plain[one.id][link] > plain[other.id][link]:
                    assert fine[one.id][link] > fine[other.id][link]
                elif (
                    plain[one.id][link] == plain[other.id][link]
                    and one.job == other.job
                    and one.key < other.key
                ):
                    assert fine[one.id][link] >= fine[other.id][link]


def test_without_keys_the_order_is_levellers():
    groups = [Group(job.id, job.id, (HERE,)) for job in JOBS]
    assert list(found(groups, 8).values()) == [[7], [5], [3]]
    with pytest.raises(ValueError, match="not among the jobs"):
        leveller_hermod.levels([], groups, 8, Scope.FABRIC)
