"""From an order of the jobs to levels: what all policies that rank jobs have in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from controlplane.model import Group, Levels, Link, Path
from controlplane.policies.interface import Scope
from controlplane.policies.pruning import prune


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
            owners = [position[group.job] for group in groups]
            level = prune(owners, [group.path for group in groups], count)
            return {group.id: dict.fromkeys(group.path, at) for group, at in zip(groups, level, strict=True)}
        case Scope.SWITCH:
            return prune_per_switch(position, groups, count)
        case Scope.PORT:
            return rank_per_port(position, groups, count)


def prune_per_switch(position: Mapping[str, int], groups: Sequence[Group], count: int) -> Levels:
    """Prune the contention graph of each switch by itself, a node being a group on that switch."""
    # No link is of two switches, so the graphs of all switches can be pruned as one.
    nodes = [(group, links) for group in groups for links in _by_switch(group.path)]
    level = prune([position[group.job] for group, _ in nodes], [links for _, links in nodes], count)
    levels: dict[str, dict[Link, int]] = {group.id: {} for group in groups}
    for (group, links), at in zip(nodes, level, strict=True):
        levels[group.id].update(dict.fromkeys(links, at))
    return levels


def _by_switch(path: Path) -> Iterable[Path]:
    links: defaultdict[str, Path] = defaultdict(tuple)
    for link in path:
        links[link.switch] += (link,)
    return links.values()


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
