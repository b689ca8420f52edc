"""Flow-fair: one level for all."""

from controlplane.model import Group, Job, Link
from controlplane.policies import Scope
from controlplane.policies.fair import levels


def test_everything_is_at_level_0():
    groups = [Group("1", "a", (Link("S1", 1), Link("S2", 2))), Group("2", "b", (Link("S1", 1),))]
    expected = {"1": {Link("S1", 1): 0, Link("S2", 2): 0}, "2": {Link("S1", 1): 0}}
    for scope in Scope:
        assert levels([Job("a", 0.1), Job("b", 0.9)], groups, 8, scope) == expected
