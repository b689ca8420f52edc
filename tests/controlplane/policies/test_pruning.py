"""Depths by hand, one ranking from another against one from nothing.

test_ordered.py has the paper's pseudo-code.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.model import Group, Link
from controlplane.policies import Incidence, Scope
from controlplane.policies.ordered import levels_in_order

JOBS = "abcdefghijkl"
LINKS = [Link(f"S{switch}", port) for switch in range(4) for port in range(3)]
paths = st.lists(st.sampled_from(LINKS), min_size=1, max_size=4, unique=True).map(tuple)
group_lists = st.lists(st.tuples(st.sampled_from(JOBS), paths), max_size=24).map(
    lambda pairs: [Group(str(index), job, path) for index, (job, path) in enumerate(pairs)]
)
places = st.integers(0, len(JOBS) - 1)
moves = st.lists(st.tuples(places, places), min_size=1, max_size=12)
scopes = st.sampled_from(list(Scope))


def levels_of(count, *paths):
    """Of one group each of the jobs 0, 1, ..., or of the job that is named before a colon."""
    groups = []
    for index, path in enumerate(paths):
        job, _, links = path.rpartition(":")
        groups.append(Group(str(index), job or str(index), tuple(Link(link, 1) for link in links)))
    order = sorted({group.job for group in groups})
    levels = levels_in_order(order, groups, count, Scope.FABRIC)
    return [min(levels[group.id].values()) for group in groups]


def test_a_chain_of_components():
    # Jobs 0 to 3 on links: 0 and 1 meet on a, 1 and 2 on b, 3 is alone on c. Without 0, 1 is before 2.
    assert levels_of(8, "a", "ab", "b", "c") == [7, 6, 5, 7]
    assert levels_of(2, "a", "ab", "b", "c") == [1, 0, 0, 1]
    assert levels_of(1, "a", "ab", "b", "c") == [0, 0, 0, 0]


def test_what_a_removal_takes_apart_goes_on_side_by_side():
    # Job 0 holds 1 and 2 together: once it is gone they do not meet.
    assert levels_of(8, "ab", "a", "b") == [7, 6, 6]


def test_groups_of_one_job_meet_only_through_another():
    # Job 1's groups share b with nobody else: only the first of them meets job 0.
    assert levels_of(8, "0:a", "1:ab", "1:b") == [7, 6, 7]
    # Job 2 comes after both there, and so brings the other one behind job 0 too.
    assert levels_of(8, "0:a", "1:ab", "1:b", "2:b") == [7, 6, 6, 5]


def test_nothing():
    assert dict(levels_in_order(["a"], [], 3, Scope.FABRIC)) == {}


@settings(deadline=None)
@given(group_lists, st.permutations(JOBS), moves, st.integers(1, 8), scopes)
def test_one_ranking_after_another_equals_each_from_nothing(kind, groups, order, moves, count, scope):
    kept = Incidence(groups, kind)
    order = list(order)
    for source, target in moves:
        assert levels_in_order(order, kept, count, scope) == levels_in_order(order, groups, count, scope)
        order.insert(target, order.pop(source))


@settings(deadline=None)
@given(group_lists, st.lists(st.tuples(st.permutations(JOBS), st.integers(1, 8), scopes), min_size=2))
def test_rankings_with_nothing_in_common_do_not_mix(kind, groups, rankings):
    kept = Incidence(groups, kind)
    for ranking in rankings:
        order, count, scope = ranking
        assert levels_in_order(order, kept, count, scope) == levels_in_order(order, groups, count, scope)


def test_the_same_levels_are_the_same_object():
    link = Link("S1", 1)
    kept = Incidence([Group(job, job, (link,)) for job in "abcdefgh"])
    first = levels_in_order("abcdefgh", kept, 3, Scope.FABRIC)
    assert levels_in_order("abcdefgh", kept, 3, Scope.FABRIC) is first
    assert levels_in_order("abcdefhg", kept, 3, Scope.FABRIC) is first
    other = levels_in_order("abdcefgh", kept, 3, Scope.FABRIC)
    assert other is first  # c and d have level 0 either way
    swapped = levels_in_order("acbdefgh", kept, 3, Scope.FABRIC)
    assert ({job for job in "abcdefgh" if swapped[job] != first[job]}, first["b"]) == ({"b", "c"}, {link: 1})


def test_levels_are_not_altered_by_the_next_ranking(kind):
    kept = Incidence([Group(job, job, (Link("S1", 1),)) for job in "abcdefgh"], kind)
    first = levels_in_order("abcdefgh", kept, 4, Scope.FABRIC)
    before = dict(first)
    levels_in_order("bacdefgh", kept, 4, Scope.FABRIC)
    assert dict(first) == before
