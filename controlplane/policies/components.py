"""The loops that find the components of links which nodes hold together: see `incidence.Nodes.connect`.

The relations are those of `incidence.Nodes`; ``todo`` is a list of links, of which the first ``count`` count.
A component is a tree of links: ``parent`` leads to its smallest. -1: the link takes no part.
"""

from __future__ import annotations

from controlplane.policies.tables import Table

SAMPLES = 2
"""Nodes of each link that are joined before it is looked for what is still apart."""

FARTHER = 4
"""To look at a node found by its link takes as long as at so many in a row (in memory they are far apart)."""


def pick_some(
    todo: Table,
    count: int,
    floor: Table,
    position: Table,
    starts: Table,
    owner: Table,
    link_starts: Table,
    nodes: Table,
    joint: Table,
    parent: Table,
    picked: Table,
) -> int:
    """List in ``picked`` a few nodes of each of the first ``count`` links of ``todo``; return how many.

    Only nodes that have several links, and whose job comes after the ``floor`` of these; ``joint`` tells the
    links that have any such node. ``parent`` makes each of the links a component of its own.
    """
    found = 0
    for turn in range(count):
        link = todo[turn]
        parent[link] = link
        if not joint[link]:
            continue
        left = SAMPLES
        at = link_starts[link]
        while left and at < link_starts[link + 1]:
            node = nodes[at]
            if starts[node + 1] - starts[node] > 1 and position[owner[node]] > floor[link]:
                picked[found] = node
                found += 1
                left -= 1
            at += 1
    return found


def join(picked: Table, count: int, starts: Table, links: Table, parent: Table) -> None:
    """Make one component of the links of each of the first ``count`` nodes of ``picked``.

    A disjoint-set forest: ``parent`` leads each link to the smallest of its component; -1: it takes no part.
    """
    for turn in range(count):
        own = -1
        for at in range(starts[picked[turn]], starts[picked[turn] + 1]):
            other = links[at]
            if parent[other] < 0:
                continue
            while parent[other] != other:
                parent[other] = parent[parent[other]]
                other = parent[other]
            if own < 0 or other < own:
                own, other = other, own
            if other >= 0:
                parent[other] = own


def pick_rest(
    todo: Table,
    count: int,
    within: Table,
    floor: Table,
    position: Table,
    starts: Table,
    links: Table,
    owner: Table,
    link_starts: Table,
    nodes: Table,
    joint: Table,
    parent: Table,
    size: Table,
    largest: Table,
    picked: Table,
) -> int:
    """List in ``picked`` the nodes that may still connect any of the ``todo`` links; return how many.

    Links of different components ``within`` are known to stay apart. So what is in the largest new component
    within an old one need not be looked at: whatever leads into it is seen from its other end. Where that
    leaves many, all nodes in a row are faster. ``size`` and ``largest`` have 0 for each link.
    """
    for turn in range(count):
        root = todo[turn]
        while parent[root] != root:
            parent[root] = parent[parent[root]]
            root = parent[root]
        size[root] += 1
        largest[within[root]] = root
    visits = 0
    for turn in range(count):
        root = todo[turn]
        if parent[root] == root and size[root] > size[largest[within[root]]]:
            largest[within[root]] = root
    for turn in range(count):
        link = todo[turn]
        if joint[link]:
            root = link
            while parent[root] != root:
                root = parent[root]
            if root != largest[within[link]]:
                visits += link_starts[link + 1] - link_starts[link]
    found = 0
    if visits * FARTHER > len(starts) - 1:
        for node in range(len(starts) - 1):
            contended = 0
            for at in range(starts[node], starts[node + 1]):
                link = links[at]
                if parent[link] >= 0 and position[owner[node]] > floor[link]:
                    contended += 1
            if contended > 1:
                picked[found] = node
                found += 1
        return found
    for turn in range(count):
        link = todo[turn]
        root = link
        while parent[root] != root:
            root = parent[root]
        if joint[link] and root != largest[within[link]]:
            for at in range(link_starts[link], link_starts[link + 1]):
                node = nodes[at]
                if starts[node + 1] - starts[node] > 1 and position[owner[node]] > floor[link]:
                    picked[found] = node
                    found += 1
    return found


def name(todo: Table, count: int, parent: Table, label: Table) -> None:
    """Label the first ``count`` links of ``todo`` with their components' smallest links."""
    for turn in range(count):
        root = todo[turn]
        while parent[root] != root:
            parent[root] = parent[parent[root]]
            root = parent[root]
        label[todo[turn]] = root
