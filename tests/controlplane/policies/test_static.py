"""Static priority by intensity."""

from controlplane.model import Group, Job, Link
from controlplane.policies import Scope
from controlplane.policies.static import levels

LINK = Link("S1", 1)


def test_higher_intensity_goes_first_whatever_the_rates_and_ties_go_to_the_smaller_id():
    jobs = [Job("a", 0.1, 0, 1.0), Job("b", 0.9, 9, 2.0), Job("d", 0.5, 0, 1.0)]
    groups = [Group(job.id, job.id, (LINK,)) for job in jobs]
    for scope in Scope:
        assert {job: at[LINK] for job, at in levels(jobs, groups, 4, scope).items()} == {
            "b": 3,
            "a": 2,
            "d": 1,
        }
