import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.model import Group, Job, Link
from controlplane.policies import Scope, crux, leveller
from controlplane.policies.blend import blend

LINK = (Link("S1", 1),)
rates = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 9)), min_size=1, max_size=6)


def instance(rows):
    jobs = [Job(f"job{n}", rate=rate, intensity=intensity) for n, (rate, intensity) in enumerate(rows)]
    return jobs, [Group(job.id, job.id, LINK) for job in jobs]


@settings(deadline=None)  # the first call loads numpy
@given(rates, st.integers(1, 8), st.sampled_from(list(Scope)))
def test_the_ends_are_the_policies_themselves(rows, count, scope):
    jobs, groups = instance(rows)
    assert blend(0)(jobs, groups, count, scope) == leveller.levels(jobs, groups, count, scope)
    assert blend(1)(jobs, groups, count, scope) == crux.levels(jobs, groups, count, scope)


def test_between_the_places_are_weighed():
    # LEVELLER: a b c d, Crux: d c a b. At 0.5: a 0 + 2, b 1 + 3, c 2 + 1, d 3 + 0.
    jobs, groups = instance([(0.1, 2), (0.2, 1), (0.3, 3), (0.4, 4)])
    found = blend(0.5)(jobs, groups, 8, Scope.FABRIC)
    assert sorted(found, key=lambda name: -found[name][LINK[0]]) == ["job0", "job2", "job3", "job1"]
    found = blend(0.1)(jobs, groups, 8, Scope.FABRIC)
    assert sorted(found, key=lambda name: -found[name][LINK[0]]) == ["job0", "job1", "job2", "job3"]


def test_outside_of_its_range():
    with pytest.raises(ValueError, match="give 0"):
        blend(1.5)
