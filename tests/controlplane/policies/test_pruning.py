"""Depths by hand, and compiled loops against plain ones; test_ordered.py has the paper's pseudo-code."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.policies import pruning
from controlplane.policies.pruning import depths, prune


def test_a_chain_of_components():
    # Jobs 0 to 3 on links: 0 and 1 meet on a, 1 and 2 on b, 3 is alone on c. Without 0, 1 is before 2.
    assert prune([0, 1, 2, 3], ["a", "ab", "b", "c"], 8) == [7, 6, 5, 7]
    assert prune([0, 1, 2, 3], ["a", "ab", "b", "c"], 2) == [1, 0, 0, 1]


def test_what_a_removal_takes_apart_goes_on_side_by_side():
    # Job 0 holds 1 and 2 together: once it is gone they do not meet.
    assert prune([0, 1, 2], ["ab", "a", "b"], 8) == [7, 6, 6]


def test_nodes_of_one_job_meet_only_through_another():
    # Job 1's nodes share b with nobody else: only the first of them meets job 0.
    assert depths([0, 1, 1], [0, 1, 3, 4], [0, 0, 1, 1], 2) == [0, 1, 0]
    # Job 2 comes after both there, and so brings the other one behind job 0 too.
    assert depths([0, 1, 1, 2], [0, 1, 3, 4, 5], [0, 0, 1, 1, 1], 2) == [0, 1, 1, 2]


def test_nothing():
    assert prune([], [], 3) == []


nodes = st.lists(st.tuples(st.integers(0, 5), st.sets(st.sampled_from("abcdef"), min_size=1)), max_size=15)


@settings(max_examples=50, deadline=None)
@given(nodes, st.integers(1, 5))
def test_compiled_equals_plain(rows, count):
    pytest.importorskip("numba", reason="numba is not installed: pruning is plain Python")
    owners, paths = [owner for owner, _ in rows], [tuple(sorted(path)) for _, path in rows]
    plain = prune(owners, paths, count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pruning, "COMPILED_FROM", 0)
        assert prune(owners, paths, count) == plain
