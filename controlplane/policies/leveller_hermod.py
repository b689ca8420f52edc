"""LEVELLER across jobs and Hermod inside a job, where there are queues for both.

No paper has the two together; the division is ours. LEVELLER's levels come first: where it uses d of the K
levels, each of them gets K // d (at least one) levels of its own, over which a job's coflows are spread by
Hermod's key; the last of those takes the keys that are left. So no coflow ever goes before one of a job that
LEVELLER puts first, and where LEVELLER needs more than half of the levels the order is LEVELLER's alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

from controlplane.model import Group, Job, Levels, Link
from controlplane.policies import hermod, leveller
from controlplane.policies.interface import Scope


def levels(jobs: Sequence[Job], groups: Sequence[Group], count: int, scope: Scope) -> Levels:
    """Rank jobs by R over weight, then a job's coflows by key. ValueError as for every policy.

    d is counted as far as a level reaches: over the fabric, on the switch or on the link.
    """
    across = leveller.levels(jobs, groups, count, scope)
    used: defaultdict[Hashable, int] = defaultdict(int)
    for on in across.values():
        for link, level in on.items():
            area = _area(link, scope)
            used[area] = max(used[area], count - level)
    place = hermod.places_in_job(groups)

    def refined(group: str, link: Link, level: int) -> int:
        own = count // used[_area(link, scope)]
        return count - 1 - (count - 1 - level) * own - min(place[group], own - 1)

    return {
        group: {link: refined(group, link, level) for link, level in on.items()}
        for group, on in across.items()
    }


def _area(link: Link, scope: Scope) -> Hashable:
    match scope:
        case Scope.FABRIC:
            return None
        case Scope.SWITCH:
            return link.switch
        case Scope.PORT:
            return link
