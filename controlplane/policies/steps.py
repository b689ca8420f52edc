"""The loops of `controlplane.policies.pruning`: leaders of links, steps of the pseudo-code, levels of nodes.

The relations are those of `incidence.Incidence` and `incidence.Nodes`; ``todo`` is a list, of links or of
nodes, of which the first ``count`` count.
"""

from __future__ import annotations

from controlplane.policies.tables import Table


def lead(
    todo: Table, count: int, width: int, starts: Table, jobs: Table, position: Table, leaders: Table
) -> None:
    """Find the first ``width`` jobs, in order, on each of the first ``count`` links of ``todo``."""
    for turn in range(count):
        link = todo[turn]
        base = link * width
        have = 0
        worst = -1
        for at in range(starts[link], starts[link + 1]):
            job = jobs[at]
            place = position[job]
            if have == width and place > worst:
                continue
            if have < width:
                have += 1
            spot = base + have - 1
            while spot > base and position[leaders[spot - 1]] > place:
                leaders[spot] = leaders[spot - 1]
                spot -= 1
            leaders[spot] = job
            worst = position[leaders[base + have - 1]]


def outdated(
    moved: Table,
    position: Table,
    job_starts: Table,
    job_links: Table,
    width: int,
    leaders: Table,
    marked: Table,
    todo: Table,
) -> int:
    """List in ``todo`` the links whose leaders may change because ``moved`` jobs did; return how many.

    These are the links of which a moved job leads, or now comes before one that does. ``marked`` has zeros.
    """
    count = 0
    for job in moved:
        for at in range(job_starts[job], job_starts[job + 1]):
            link = job_links[at]
            if marked[link]:
                continue
            base = link * width
            last = leaders[base + width - 1]
            hit = last < 0 or position[job] < position[last]
            spot = base
            while not hit and spot < base + width:
                hit = leaders[spot] == job
                spot += 1
            if hit:
                marked[link] = 1
                todo[count] = link
                count += 1
    return count


def remove_first(
    step: int,
    width: int,
    order: Table,
    position: Table,
    job_starts: Table,
    leaders: Table,
    label: Table,
    first: Table,
    removed: Table,
    step_removed: Table,
    floor: Table,
    alone_from: Table,
    first_before: Table,
    label_before: Table,
    same: Table,
    label_after: Table,
    todo: Table,
) -> tuple[int, int]:
    """Take the first job out of each component: one ``step`` of the paper's pseudo-code.

    ``label`` says which component each contended link is in (-1: none), ``leaders`` the first jobs on each,
    of which ``removed`` are gone. Of what happens on each link: ``first`` is the job that its component
    loses, ``step_removed`` when each leader goes, ``alone_from`` when no two jobs are left there. While the
    ``same`` jobs go as in an earlier ranking (``first_before``), what is left falls into the components that
    it fell into then (``label_before``); the other links that are contended still are listed in ``todo``.
    Return how many of these there are, and how many are contended altogether.
    """
    least = first  # what is first in a component stands at its root until each link is told
    for root in label:
        if root >= 0:
            least[root] = len(order)
    for link in range(len(label)):
        root = label[link]
        if root >= 0:
            place = position[leaders[link * width + removed[link]]]
            if place < least[root]:
                least[root] = place
    for link in range(len(label) - 1, -1, -1):  # a component's root, its smallest link, comes last
        root = label[link]
        if root >= 0:
            floor[link] = least[root]
            first[link] = order[least[root]]
    count = contended = 0
    for link in range(len(label)):
        if label[link] < 0:
            continue
        at = link * width + removed[link]
        if leaders[at] == first[link]:
            step_removed[at] = step
            removed[link] += 1
        if first[link] != first_before[link]:
            same[link] = 0
        if job_starts[link + 1] - job_starts[link] - removed[link] < 2:
            alone_from[link] = step + 1
            continue
        contended += 1
        if same[link]:
            label_after[link] = label_before[link]
        else:
            todo[count] = link
            count += 1
    return count, contended


def settle(
    todo: Table,
    count: int,
    top: int,
    width: int,
    starts: Table,
    links: Table,
    owner: Table,
    leaders: Table,
    removed: Table,
    step_removed: Table,
    alone_from: Table,
    level: Table,
) -> None:
    """Set the level of the first ``count`` nodes of ``todo``.

    A node takes the level ``top`` less the step in which its job goes from one of its links, or in which the
    last of its links is left to one job, so that it contends with nobody; 0 where neither comes in time.
    """
    for turn in range(count):
        node = todo[turn]
        step = 0
        for entry in range(starts[node], starts[node + 1]):
            link = links[entry]
            gone = -1
            for at in range(link * width, link * width + removed[link]):
                if leaders[at] == owner[node]:
                    gone = step_removed[at]
            if gone >= 0:
                step = gone
                break
            if alone_from[link] > step:
                step = alone_from[link]
                if step >= top:
                    step = top
                    break
        level[node] = top - step


def changed_nodes(
    width: int,
    before: tuple[Table, Table, Table, Table],
    after: tuple[Table, Table, Table, Table],
    link_starts: Table,
    nodes: Table,
    owner: Table,
    marked: Table,
    todo: Table,
) -> int:
    """List in ``todo`` the nodes of which `settle` would see anything new; return how many.

    ``before`` and ``after`` are leaders, removed, step_removed and alone_from. The ``nodes`` on each link are
    sorted by ``owner``. ``marked`` has a 0 for each node.
    """
    leaders, removed, step_removed, alone_from = after
    old_leaders, old_removed, old_step_removed, old_alone_from = before
    count = 0
    for link in range(len(removed)):
        if alone_from[link] != old_alone_from[link]:
            for place in range(link_starts[link], link_starts[link + 1]):
                if not marked[nodes[place]]:
                    marked[nodes[place]] = 1
                    todo[count] = nodes[place]
                    count += 1
            continue
        for turn in range(max(removed[link], old_removed[link])):
            at = link * width + turn
            job = leaders[at] if turn < removed[link] else -1
            old_job = old_leaders[at] if turn < old_removed[link] else -1
            if job == old_job and step_removed[at] == old_step_removed[at]:
                continue
            for one in (job, old_job):
                low, high = link_starts[link], link_starts[link + 1]
                while low < high:
                    middle = (low + high) // 2
                    if owner[nodes[middle]] < one:
                        low = middle + 1
                    else:
                        high = middle
                while low < link_starts[link + 1] and owner[nodes[low]] == one:
                    if not marked[nodes[low]]:
                        marked[nodes[low]] = 1
                        todo[count] = nodes[low]
                        count += 1
                    low += 1
    return count
