"""Who contends with whom: connected components, over the links that jobs share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

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

    def join(self, one: int, other: int) -> bool:
        """Merge ``one``'s set into ``other``'s, whose representative stays; return whether they were two."""
        a, b = self.find(one), self.find(other)
        self._parent[a] = b
        return a != b


def job_components(jobs: Iterable[str], groups: Iterable[Group]) -> list[frozenset[str]]:
    """Partition ``jobs`` so that two of them are together when a chain of shared links connects them.

    Coarser than the components of the paper's contention graph (`controlplane.policies.ordered`): here a
    job's groups hold together, because what holds for a job (being profiled, say) holds for all its flows.
    Every group's job must be among ``jobs``.
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
