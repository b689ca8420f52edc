"""The paper's pruning of the contention graph, in one pass over the group-link incidence.

The paper draws a node per flow and an edge where flows of different jobs share a link, and goes from the top
level down: in each connected component the nodes of the first job take the level and leave the graph; what is
left gets level 0. Here nodes are groups, no pair of them is ever formed, and the order is turned around: jobs
enter from the last to the first. Where one joins components of later jobs, these are what its removal would
leave, one level lower. So how deep a node ends up under others is its level, counted from the top, and the
work does not grow with the number of levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate, chain
from typing import Any

from controlplane.model import Path

COMPILED_FROM = 200_000
"""From so many pairs of group and link on it pays to compile `depths`, where numba is installed."""

SEVERAL = -1
"""In place of a link's only job: it has more than one."""


def prune(owners: Sequence[int], paths: Sequence[Path], count: int) -> list[int]:
    """Return the level of each node when there are ``count``.

    Node i, of the job at place ``owners[i]`` in the order, uses the links ``paths[i]``. A node that contends
    with nobody gets level ``count`` - 1.
    """
    number: dict[object, int] = {}
    links = [number.setdefault(link, len(number)) for link in chain.from_iterable(paths)]
    starts = list(accumulate(map(len, paths), initial=0))
    compiled = compiled_depths() if len(links) >= COMPILED_FROM else None
    if compiled is None:
        depth = depths(owners, starts, links, len(number))
    else:
        # Imported here: numpy takes a while to load, and most commands and policies do without.
        import numpy as np

        depth = compiled(*(np.array(one, np.int32) for one in (owners, starts, links)), len(number))
    return [max(count - 1 - one, 0) for one in depth]


@cache
def compiled_depths() -> Callable[..., Any] | None:
    """Return `depths` for arrays of 32-bit integers, or None where numba is not installed."""
    try:
        from numba import njit
    except ImportError:
        return None
    return njit(depths)


def depths(owners: Sequence[int], starts: Sequence[int], links: Sequence[int], size: int) -> list[int]:
    """Return how many jobs go before each node, one after the other, in its component.

    The links of node i, numbers below ``size``, are ``links[starts[i]:starts[i + 1]]``. Plain loops over
    numbers only, because numba compiles the same text for large fabrics.
    """
    nodes = len(owners)
    last = 0
    for owner in owners:
        last = max(last, owner)
    # Nodes by falling owner, by counting.
    ends = [0] * (last + 2)
    for owner in owners:
        ends[last - owner + 1] += 1
    for place in range(last + 1):
        ends[place + 1] += ends[place]
    turn = [0] * nodes
    for node in range(nodes):
        place = last - owners[node]
        turn[ends[place]] = node
        ends[place] += 1

    # Components as disjoint sets: by each set's root, its size and a node of its first job.
    parent = list(range(nodes))
    members = [1] * nodes
    first = list(range(nodes))
    # What was the first of a component, and under which node of an earlier job (or its own) it came.
    joined = [0] * nodes
    under = [0] * nodes
    joins = 0
    # Of each link: its job while it has one, some node on it, and, until another job enters, all others (as
    # chained entries of ``links``), which are not connected yet.
    job = [0] * size
    some = [-1] * size
    more = [-1] * size
    after = [-1] * len(links)
    holder = [-1] * len(links)
    for node in turn:
        owner = owners[node]
        own = node
        for entry in range(starts[node], starts[node + 1]):
            link = links[entry]
            other = some[link]
            if other < 0:
                some[link] = node
                job[link] = owner
                continue
            if job[link] == owner:
                holder[entry] = node
                after[entry] = more[link]
                more[link] = entry
                continue
            job[link] = SEVERAL
            waiting = more[link]
            more[link] = -1
            while True:
                while parent[other] != other:
                    parent[other] = parent[parent[other]]
                    other = parent[other]
                while parent[own] != own:
                    own = parent[own]
                if other != own:
                    joined[joins] = first[other]
                    under[first[other]] = first[own]
                    joins += 1
                    large, small = (own, other) if members[own] >= members[other] else (other, own)
                    first[large] = first[own]
                    parent[small] = large
                    members[large] += members[small]
                    own = large
                if waiting < 0:
                    break
                other = holder[waiting]
                waiting = after[waiting]
            some[link] = own

    depth = [0] * nodes
    for place in range(joins - 1, -1, -1):
        node = joined[place]
        above = under[node]
        depth[node] = depth[above]
        if owners[above] != owners[node]:
            depth[node] += 1
    return depth
