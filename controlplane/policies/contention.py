"""Who contends with whom: connected components of groups and of jobs over the links they share.

The paper draws a contention graph with a node per flow and an edge where flows of different jobs share a
link. Its components are found here without ever forming a pair of flows: on a link that carries two or more
jobs every group there is connected with every other (those of one job through any group of another), and a
link that carries one job connects nobody. So one pass over the group-link incidence is enough.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from controlplane.model import Group, Link


class DisjointSets:
    """Union-find over 0..size-1 with path halving."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))

    def find(self, item: int) -> int:
        """Return the representative of ``item``'s set."""
        parent = self._parent
        while parent[item] != item:
            parent[item] = item = parent[parent[item]]
        return item

    def join(self, one: int, other: int) -> None:
        """Merge two sets; the smaller representative stays."""
        a, b = self.find(one), self.find(other)
        if a != b:
            self._parent[max(a, b)] = min(a, b)


def group_components(groups: Sequence[Group]) -> list[list[Group]]:
    """Components of the paper's contention graph, each in the order of ``groups``.

    A group that shares no link with another job is a component by itself.
    """
    on_link: defaultdict[Link, list[int]] = defaultdict(list)
    for index, group in enumerate(groups):
        for link in group.path:
            on_link[link].append(index)
    sets = DisjointSets(len(groups))
    for indices in on_link.values():
        first = indices[0]
        if any(groups[index].job != groups[first].job for index in indices):
            for index in indices:
                sets.join(first, index)
    components: defaultdict[int, list[Group]] = defaultdict(list)
    for index, group in enumerate(groups):
        components[sets.find(index)].append(group)
    return list(components.values())


def job_components(jobs: Iterable[str], groups: Iterable[Group]) -> list[frozenset[str]]:
    """Partition ``jobs`` so that two of them are together when a chain of shared links connects them.

    Coarser than `group_components`: here a job's groups hold together, because what holds for a job
    (being profiled, say) holds for all its flows. Every group's job must be among ``jobs``.
    """
    names = list(dict.fromkeys(jobs))
    number = {name: index for index, name in enumerate(names)}
    sets = DisjointSets(len(names))
    first_on: dict[Link, int] = {}
    for group in groups:
        job = number[group.job]
        for link in group.path:
            sets.join(job, first_on.setdefault(link, job))
    components: defaultdict[int, list[str]] = defaultdict(list)
    for index, name in enumerate(names):
        components[sets.find(index)].append(name)
    return [frozenset(members) for members in components.values()]
