"""From an order of the jobs to levels: what all policies that rank jobs have in common."""

from __future__ import annotations

from collections.abc import Sequence

from controlplane.model import Group, Levels
from controlplane.policies.incidence import Incidence, NodeLevels, Ranked
from controlplane.policies.interface import Scope
from controlplane.policies.pruning import prune


def levels_in_order(order: Sequence[str], groups: Sequence[Group], count: int, scope: Scope) -> Levels:
    """Give the K = ``count`` levels to ``groups`` so that jobs earlier in ``order`` go first.

    Under scope ``fabric`` that is the paper's pruning of the contention graph, a node being a group; under
    ``switch`` of the graph of each switch by itself, a node being a group on that switch; under ``port`` of
    each link by itself, which separates K jobs on every link. `Incidence` for ``groups`` saves time from one
    ranking to the next; the same levels then are the same object. ValueError where a group's job is not in
    ``order`` or ``count`` < 1.
    """
    if count < 1:
        raise ValueError(f"count = {count}: there must be at least one level")
    incidence = groups if isinstance(groups, Incidence) else Incidence(groups)
    numbers = [incidence.number[job] for job in order if job in incidence.number]
    if len(numbers) < len(incidence.jobs):
        known = set(order)
        stray = next(group for group in groups if group.job not in known)
        raise ValueError(f"group {stray.id}: job {stray.job!r} is not among the jobs")
    nodes = incidence.nodes(scope)
    last = nodes.last
    if last and last.order == numbers and last.count == count:
        return last.levels
    level = prune(nodes, numbers, count)
    same = last and incidence.tables.equal(last.levels.level, level)
    levels = last.levels if last and same else NodeLevels(nodes, level)
    nodes.last = Ranked(numbers, count, levels)
    return levels
