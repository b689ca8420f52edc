from controlplane.model import Group, Job, Link
from controlplane.policies import Scope, leveller, leveller_host

A, B = Link("S1", 1), Link("S2", 1)


def test_one_level_for_the_whole_fabric_whatever_the_scope():
    jobs = [Job("a", 0.1), Job("b", 0.2), Job("c", 0.3)]
    groups = [Group("1", "a", (A,)), Group("2", "b", (A, B)), Group("3", "c", (B,))]
    for scope in Scope:
        found = leveller_host.levels(jobs, groups, 8, scope)
        assert found == leveller.levels(jobs, groups, 8, Scope.FABRIC)
        assert found["2"] == {A: 6, B: 6}
    assert leveller.levels(jobs, groups, 8, Scope.PORT)["2"] == {A: 6, B: 7}
