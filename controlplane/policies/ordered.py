"""From an order of the jobs to levels: what all policies that rank jobs have in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from controlplane.model import Group, Levels, Link
from controlplane.policies.contention import group_components
from controlplane.policies.interface import Scope


def levels_in_order(order: Sequence[str], groups: Sequence[Group], count: int, scope: Scope) -> Levels:
    """Give the K = ``count`` levels to ``groups`` so that jobs earlier in ``order`` go first.

    ValueError where a group's job is not in ``order`` or ``count`` < 1.
    """
    if count < 1:
        raise ValueError(f"count = {count}: there must be at least one level")
    position = {job: index for index, job in enumerate(order)}
    for group in groups:
        if group.job not in position:
            raise ValueError(f"group {group.id}: job {group.job!r} is not among the jobs")
    match scope:
        case Scope.FABRIC:
            level = prune(position, groups, count)
            return {group.id: dict.fromkeys(group.path, level[group.id]) for group in groups}
        case Scope.PORT:
            return rank_per_port(position, groups, count)


def prune(position: Mapping[str, int], groups: Sequence[Group], count: int) -> dict[str, int]:
    """Compress an order of jobs to ``count`` levels: the paper's pruning of the contention graph.

    From the top level down, in each connected component the groups of the first job take the level and leave
    the graph; what is left gets level 0. All groups of that job in the component go together (they tie). A
    group that contends with nobody is a component of its own and so gets the top level.
    """
    levels: dict[str, int] = {}
    left = list(groups)
    for level in range(count - 1, 0, -1):
        rest: list[Group] = []
        for component in group_components(left):
            first = min(position[group.job] for group in component)
            for group in component:
                if position[group.job] == first:
                    levels[group.id] = level
                else:
                    rest.append(group)
        left = rest
    return levels | {group.id: 0 for group in left}


def rank_per_port(position: Mapping[str, int], groups: Sequence[Group], count: int) -> Levels:
    """Rank, on each link by itself, only the jobs that meet there.

    The i-th job in order (from 0) gets level ``count`` - 1 - i, never below 0: ``count`` levels separate
    ``count`` jobs on every link, and a job alone on a link has the top level there.
    """
    meeting: defaultdict[Link, set[int]] = defaultdict(set)
    for group in groups:
        for link in group.path:
            meeting[link].add(position[group.job])
    level_of = {
        link: {job: max(count - 1 - rank, 0) for rank, job in enumerate(sorted(jobs))}
        for link, jobs in meeting.items()
    }
    return {group.id: {link: level_of[link][position[group.job]] for link in group.path} for group in groups}
