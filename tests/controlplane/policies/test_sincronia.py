import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.model import Group, Job, Link
from controlplane.policies import Scope, sincronia

A, B = Link("S1", 1), Link("S2", 1)


def group(job, load, *path):
    return Group(f"{job}-{len(path)}", job, path or (A,), load)


def test_on_one_port_the_smallest_goes_first():
    # With equal weights BSSI on one port is shortest first (Smith's rule).
    jobs = [Job(name) for name in "abc"]
    assert sincronia.bssi(jobs, [group("a", 3), group("b", 1), group("c", 2)]) == ["b", "c", "a"]


def test_weights_follow_smiths_rule():
    jobs = [Job("a", weight=9), Job("b"), Job("c")]
    assert sincronia.bssi(jobs, [group("a", 3), group("b", 1), group("c", 2)]) == ["a", "b", "c"]


def test_the_bottleneck_is_scaled():
    # B (5) is the bottleneck: c, of 3 there, goes last and takes 2/3 of b's weight with it. On A (4) b, with
    # 1/3 of weight for 2, then goes behind a, with 1 for 2.
    jobs = [Job(name) for name in "abc"]
    groups = [group("a", 2, A), group("b", 2, A, B), group("c", 3, B)]
    assert sincronia.bssi(jobs, groups) == ["a", "b", "c"]


def test_the_last_jobs_share_the_last_level():
    jobs = [Job(name) for name in "abcd"]
    groups = [group(name, load) for load, name in enumerate("abcd", 1)]
    for scope in Scope:
        found = sincronia.levels(jobs, groups, 3, scope)
        assert [found[one.id][A] for one in groups] == [2, 1, 0, 0]


def test_jobs_that_send_nothing_go_first_and_ties_go_by_id():
    jobs = [Job(name) for name in "cab"]
    assert sincronia.bssi(jobs, [group("a", 1), group("b", 1)]) == ["c", "a", "b"]


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from([(A,), (B,), (A, B)]), st.integers(1, 9)), max_size=9
    )
)
def test_every_job_has_one_place(rows):
    jobs = [Job(str(number)) for number in range(5)]
    groups = [Group(str(n), str(job), path, load) for n, (job, path, load) in enumerate(rows)]
    assert sorted(sincronia.bssi(jobs, groups)) == [job.id for job in jobs]


def test_bad_calls():
    with pytest.raises(ValueError, match="'b' is not among the jobs"):
        sincronia.levels([Job("a")], [group("b", 1)], 2, Scope.FABRIC)
    with pytest.raises(ValueError, match="at least one level"):
        sincronia.levels([Job("a")], [], 0, Scope.FABRIC)
