"""The paper's pruning of the contention graph, step by step, on links instead of pairs of flows.

The paper draws a node per flow and an edge where flows of different jobs share a link, and goes from the top
level down: in each connected component the nodes of the first job take the level and leave the graph; what
is left gets level 0. Here nodes are groups (under finer scopes, their parts), and no pair of them is ever
formed:

- A link with at least two jobs connects all nodes on it, one with a single job connects nothing. So
  components are those of the contended links, which nodes hold together; links are far fewer than nodes.
- A link's jobs leave it in order, so that only the first K - 1 on each, its leaders, are ever asked for. The
  first job of a component is the first that any of its links still has.
- A removal seldom takes a component apart, and a few nodes of each link are enough to see that it did not.

After another ranking of the same nodes, only those links are looked at again on which jobs that moved in the
order lead or come to lead, and the components only from the step on in which they lose another job than
before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from controlplane.policies.incidence import NodeLevels, Nodes
from controlplane.policies.steps import changed_nodes, lead, outdated, remove_first, settle
from controlplane.policies.tables import Table


@dataclass(frozen=True, slots=True)
class Pruned:
    """A ranking: the levels, and how they came about."""

    order: Sequence[int]
    """The jobs' numbers, the first first."""
    count: int
    """K."""
    levels: NodeLevels
    leaders: Table
    """The first jobs on each link, as many as K - 1 (or as any link has)."""
    removed: Table
    """How many leaders left each link while it was contended..."""
    step_removed: Table
    """... and in which step each did."""
    alone_from: Table
    """From which step on each link has no two jobs."""
    labels: Sequence[Table]
    """Per step, the component of each link."""
    firsts: Sequence[Table]
    """Per step, the job that each link's component loses."""


def prune(nodes: Nodes, order: Sequence[int], count: int, before: Pruned | None = None) -> Pruned:
    """Rank ``nodes`` for jobs in ``order``, with ``count`` levels.

    A node that contends with nobody is on top. ``before``, an earlier ranking of the same nodes, only saves
    time: where it has the same levels, its own `Pruned.levels` come back.
    """
    if before and before.count != count:
        before = None
    if before and before.order == order:
        return before
    incidence = nodes.incidence
    tables, size = incidence.tables, len(incidence.link)
    places = [0] * len(order)
    for place, job in enumerate(order):
        places[job] = place
    ordered, position = tables.of(order, len(order)), tables.of(places, len(order))
    width = max(min(count - 1, incidence.most), 1)
    todo = tables.counting(size)
    moved = moved_jobs(before.order, order) if before else order
    few = len(moved) <= len(order) // 4
    if before and few:
        leaders = before.leaders.copy()
        late = tables.run(outdated)(
            tables.of(moved, len(moved)),
            position,
            incidence.job_starts,
            incidence.job_links,
            width,
            leaders,
            tables.filled(size),
            todo,
        )
        if not late:
            return replace(before, order=order)
    else:
        leaders, late = tables.filled(size * width, -1), size
    tables.run(lead)(todo, late, width, incidence.link_starts, incidence.link_jobs, position, leaders)

    removed, step_removed = tables.filled(size), tables.filled(size * width)
    alone_from, floor = nodes.alone_from.copy(), tables.filled(size, -1)
    same, nothing = tables.filled(size, 1 if before else 0), tables.filled(size, -1)
    labels: list[Table] = [nodes.label]
    firsts: list[Table] = []
    steps = min(count - 1, len(order))
    for step in range(steps):
        first, label = nothing.copy(), nothing.copy()
        late, contended = tables.run(remove_first)(
            step,
            width,
            ordered,
            position,
            incidence.link_starts,
            leaders,
            labels[step],
            first,
            removed,
            step_removed,
            floor,
            alone_from,
            before.firsts[step] if before and step < len(before.firsts) else nothing,
            before.labels[step + 1] if before and step + 1 < len(before.labels) else nothing,
            same,
            label,
            todo,
        )
        firsts.append(first)
        if not contended or step + 1 == steps:
            break
        nodes.connect(todo, late, labels[step], floor, position, label)
        labels.append(label)

    now = (leaders, removed, step_removed, alone_from)
    if before is None or not few:
        level, todo, late = tables.filled(len(nodes)), tables.counting(len(nodes)), len(nodes)
    else:
        level, todo = before.levels.level.copy(), tables.filled(len(nodes))
        then = (before.leaders, before.removed, before.step_removed, before.alone_from)
        late = tables.run(changed_nodes)(
            width,
            then,
            now,
            nodes.link_starts,
            nodes.link_nodes,
            nodes.owner,
            tables.filled(len(nodes)),
            todo,
        )
        if not late:
            return Pruned(order, count, before.levels, *now, labels, firsts)
    tables.run(settle)(todo, late, count - 1, width, nodes.starts, nodes.links, nodes.owner, *now, level)
    return Pruned(order, count, NodeLevels(nodes, level), *now, labels, firsts)


def moved_jobs(before: Sequence[int], after: Sequence[int]) -> list[int]:
    """Return as few jobs as possible such that all others are in the same order ``before`` and ``after``."""
    was = [0] * len(before)
    for place, job in enumerate(before):
        was[job] = place
    # The others are a longest increasing subsequence of the old places: by patience sorting. Of each length,
    # the least place that such a sequence can end at, and the job there; of each job, who is before it.
    least: list[int] = []
    ends: list[int] = []
    previous: dict[int, int] = {}
    for job in after:
        length = bisect_left(least, was[job])
        if length:
            previous[job] = ends[length - 1]
        least[length : length + 1] = [was[job]]
        ends[length : length + 1] = [job]
    stays = set()
    job = ends[-1] if ends else -1
    while job >= 0:
        stays.add(job)
        job = previous.get(job, -1)
    return [job for job in after if job not in stays]
