"""The loops of `controlplane.policies.pruning`, on the relations of `incidence.Nodes`.

Components of links are disjoint sets: ``parent`` leads each link towards its component's root, and is -1
while the link has no two jobs. ``size`` is the number of a root's links. The sum of ``offset`` from a link to
its root is what was added to its component since the link came to it. These are rows of ``per_link``, as are
``head`` and ``counted`` (or ``lost``), of use within a loop, and ``whole``, what is known of each part.
"""

from __future__ import annotations

from controlplane.policies.tables import Table

ROWS = 6
"""Rows of ``per_link``."""


def merge(
    order: Table,
    job_nodes: Table,
    starts: Table,
    links: Table,
    part: Table,
    total: Table,
    parts: int,
    merged: Table,
    per_link: Table,
    following: Table,
    base: Table,
    member: Table,
) -> None:
    """Put the jobs into an empty graph, the last in ``order`` first, until each of its ``parts`` is whole.

    Each job adds one to each component that it has nodes in; so what was added since a node came is how many
    jobs its component loses before that node goes. ``member`` gets a link of each node's component, ``base``
    what had been added there when the node came. ``merged`` gets each job's place, ``whole`` that of the job
    with which a part became whole (-1: it did not). Earlier jobs find it so, and their nodes there are not
    looked at. Nobody's are where a part is one link, which cannot fall apart.

    A link of one job connects nothing. Its nodes wait in a list, from ``head`` on, for the next job there:
    ``following`` has, for each node's entry of the link, the next node. ``counted`` is at which place a
    component was last added to.
    """
    parent, offset, size = per_link[0], per_link[1], per_link[2]
    head, counted, whole = per_link[3], per_link[4], per_link[5]

    # Within `merge` because it then is compiled into it: a call from compiled code takes longer than this.
    def join(own: int, link: int) -> int:
        """Make one component of ``link``'s and the one with root ``own`` (-1: none), and return its root."""
        while parent[parent[link]] != parent[link]:
            offset[link] += offset[parent[link]]
            parent[link] = parent[parent[link]]
            link = parent[link]
        root: int = parent[link]
        if own < 0 or own == root:
            return root
        if size[own] < size[root]:
            own, root = root, own
        parent[root] = own
        offset[root] -= offset[own]
        size[own] += size[root]
        return own

    for link in range(len(parent)):
        parent[link] = head[link] = counted[link] = -1
        whole[link] = len(order) if total[link] == 1 else -1
    for place in range(len(order)):
        merged[order[place]] = place
    place = len(order)
    while parts and place > 0:
        place -= 1
        first, last = job_nodes[order[place]], job_nodes[order[place] + 1]
        for node in range(first, last):
            if part[node] < 0 or whole[part[node]] > place:
                continue
            own = -1
            for at in range(starts[node], starts[node + 1]):
                link = links[at]
                if parent[link] < 0:
                    waiting = head[link]
                    if waiting < 0 or first <= waiting < last:
                        following[at] = waiting
                        head[link] = node
                        continue
                    parent[link], offset[link], size[link] = link, 0, 1
                    while waiting >= 0:
                        if member[waiting] < 0:
                            member[waiting], base[waiting] = link, 0
                        later = -1
                        for entry in range(starts[waiting], starts[waiting + 1]):
                            if links[entry] == link:
                                later = following[entry]
                            elif parent[links[entry]] >= 0:
                                own = join(own, links[entry])
                        waiting = later
                if parent[link] != own:
                    own = join(own, link)
            member[node] = own
            if own >= 0 and size[own] == total[part[node]]:
                if whole[part[node]] < 0:
                    parts -= 1
                whole[part[node]] = place
        for node in range(first, last):
            if part[node] >= 0 and whole[part[node]] <= place and member[node] >= 0:
                root = join(-1, member[node])
                if counted[root] != place:
                    counted[root] = place
                    offset[root] += 1
                member[node], base[node] = root, offset[root]


def tell_parts(starts: Table, links: Table, per_link: Table, part: Table, total: Table) -> int:
    """After all jobs have merged, tell each node's ``part`` by its root, and there how many links it has.

    ``total`` is 0 elsewhere. Return how many parts have several.
    """
    parent, size = per_link[0], per_link[2]
    parts = 0
    for link in range(len(parent)):
        if parent[link] == link:
            total[link] = size[link]
            if size[link] > 1:
                parts += 1
    for node in range(len(part)):
        if part[node] >= 0:
            root = links[starts[node]]
            while parent[root] != root:
                root = parent[root]
            part[node] = root
    return parts


def settle(
    order: Table,
    job_nodes: Table,
    part: Table,
    merged: Table,
    per_link: Table,
    base: Table,
    fresh: bool,
    top: int,
    level: Table,
) -> bool:
    """Give each node the level ``top`` less the number of jobs that its component loses before, 0 at least.

    A part is whole without the jobs that at the last `merge` came when it already was: as long as it has only
    ``lost`` some of these, it is one component. Where it loses another one before the levels are used up,
    `merge` must have been for this very order: unless it is so ``fresh``, return False. Then ``level`` has
    what is called ``member`` there.
    """
    parent, offset = per_link[0], per_link[1]
    lost, counted, whole = per_link[3], per_link[4], per_link[5]
    for link in range(len(lost)):
        lost[link], counted[link] = 0, -1
    for place in range(len(order)):
        job = order[place]
        for node in range(job_nodes[job], job_nodes[job + 1]):
            own = part[node]
            depth = 0
            if own >= 0 and merged[job] < whole[own]:
                if counted[own] != place:
                    counted[own] = place
                    lost[own] += 1
                depth = lost[own] - 1
            elif own >= 0 and lost[own] >= top:
                depth = top
            elif own >= 0:
                if not fresh:
                    return False
                link = level[node]
                depth = lost[own] + offset[link] - base[node]
                while parent[link] != link:
                    link = parent[link]
                    depth += offset[link]
            level[node] = max(top - depth, 0)
    return True
