"""Whose rate is to be computed again after a change: as few flows as possible, yet the result is exact.

Rates are right when every flow is held: by its own limit, or by a link of its path that is full, on which no
flow of its level gets more and none of a lower level gets anything. There is only one such allocation, so it
is enough to keep that condition. A change first marks the flows that it may have freed; their rates are
computed over what all others leave; then every link they changed is checked, and flows that are no longer
held, or that hold more than their share, are marked too, until none is left. Most changes reach a handful of
flows, however large the fabric.
"""

from __future__ import annotations

import numpy as np

from simulator.compiled import compiled
from simulator.state import AFFECTED, NONE, State

MARKED, SOLVED = 1, 2
"""A flow's place in the computation: waiting for it, and part of it, its rate in ``fresh``."""

SLIGHT = 1e-11
"""Rates below, or differing by, this part of a link's capacity are rounding."""


@compiled
def binds(s: State, link: int) -> bool:
    """Whether the active flows on ``link`` could fill it."""
    return bool(s.demand[link] > s.capacity[link] * (1 + 1e-9))


@compiled
def level_of(s: State, entry: int) -> int:
    """Return the level in force of a flow on a link."""
    return 0 if s.early[s.entry_flow[entry]] else int(s.level[entry])


@compiled
def mark(s: State, flow: int) -> None:
    """Put ``flow`` among those whose rate is to be computed again."""
    if not s.marked[flow]:
        s.marked[flow] = MARKED
        s.queue[s.counts[AFFECTED]] = flow
        s.counts[AFFECTED] += 1


@compiled
def mark_held(s: State, flow: int) -> None:
    """Mark the flows that a link of ``flow``'s path holds: what ``flow`` does there may free them."""
    for entry in range(s.flow_entry[flow], s.flow_entry[flow + 1]):
        link = s.entry_link[entry]
        if not binds(s, link):
            continue  # and holds nobody
        other = s.head[link]
        while other != NONE:
            if s.held[s.entry_flow[other]] == link:
                mark(s, s.entry_flow[other])
            other = s.after[other]


@compiled
def attach(s: State, flow: int) -> None:
    """Let ``flow`` take part: link its entries, and mark it."""
    s.active[flow] = 1
    s.held[flow] = NONE
    for entry in range(s.flow_entry[flow], s.flow_entry[flow + 1]):
        link = s.entry_link[entry]
        first = s.head[link]
        s.after[entry] = first
        s.before[entry] = NONE
        if first != NONE:
            s.before[first] = entry
        s.head[link] = entry
        s.demand[link] += s.limit[flow] * s.width[flow]
    mark(s, flow)


@compiled
def detach(s: State, flow: int) -> None:
    """Take ``flow`` out, and mark the flows that may now get more."""
    mark_held(s, flow)
    s.active[flow] = 0
    s.rate[flow] = 0.0
    s.due[flow] = np.inf
    for entry in range(s.flow_entry[flow], s.flow_entry[flow + 1]):
        link = s.entry_link[entry]
        following, previous = s.after[entry], s.before[entry]
        if previous == NONE:
            s.head[link] = following
        else:
            s.after[previous] = following
        if following != NONE:
            s.before[following] = previous
        # An empty link forgets the rounding of what came and went.
        s.demand[link] = s.demand[link] - s.limit[flow] * s.width[flow] if s.head[link] != NONE else 0.0


@compiled
def drop_inactive(s: State) -> None:
    """Take flows that have ended since they were marked out of the queue."""
    kept = 0
    for at in range(s.counts[AFFECTED]):
        flow = s.queue[at]
        if s.active[flow]:
            s.queue[kept] = flow
            kept += 1
        else:
            s.marked[flow] = 0
    s.counts[AFFECTED] = kept


@compiled
def rate_now(s: State, flow: int) -> float:
    """Return the newest rate of ``flow``."""
    return float(s.fresh[flow] if s.marked[flow] == SOLVED else s.rate[flow])


@compiled
def changed(s: State, flow: int) -> bool:
    """Whether a solved flow's rate is another than before."""
    return bool(abs(s.rate[flow] - s.fresh[flow]) > 1e-14 * s.limit[flow])


@compiled
def extend(s: State) -> bool:
    """Mark the flows that the rates just computed leave wrong; return whether there are any."""
    total = s.counts[AFFECTED]
    links = 0
    for at in range(total):
        flow = s.queue[at]
        moved = changed(s, flow)
        for entry in range(s.flow_entry[flow], s.flow_entry[flow + 1]):
            link = s.entry_link[entry]
            if (moved or s.held[flow] == link) and not s.full[link] and binds(s, link):
                s.full[link] = 1  # listed
                s.touched[links] = link
                links += 1
    for at in range(links):
        s.full[s.touched[at]] = 0
        check_link(s, s.touched[at])
    return bool(s.counts[AFFECTED] > total)


@compiled
def check_link(s: State, link: int) -> None:
    """Mark the flows on ``link``, of those not just solved, that it wrongly holds or lets have too much."""
    slight = s.capacity[link] * SLIGHT
    used = 0.0
    lowest, most = 1 << 62, 0.0  # the lowest level that gets anything, and the most that a flow there gets
    first, least = -1, 0.0  # the first level of solved flows held here, and the least that one of those gets
    entry = s.head[link]
    while entry != NONE:
        flow = s.entry_flow[entry]
        level, rate = level_of(s, entry), rate_now(s, flow)
        used += rate * s.width[flow]
        if rate > slight:
            if level < lowest:
                lowest, most = level, rate
            elif level == lowest:
                most = max(most, rate)
        if s.marked[flow] == SOLVED and s.held[flow] == link:
            if level > first:
                first, least = level, rate
            elif level == first:
                least = min(least, rate)
        entry = s.after[entry]
    full = used >= s.capacity[link] - 100 * slight
    entry = s.head[link]
    while entry != NONE:
        flow = s.entry_flow[entry]
        if not s.marked[flow]:
            level, rate = level_of(s, entry), s.rate[flow]
            freed = s.held[flow] == link and (
                not full or level > lowest or (level == lowest and rate < most - slight)
            )
            greedy = (level < first and rate > slight) or (level == first and rate > least + slight)
            if freed or greedy:
                mark(s, flow)
        entry = s.after[entry]
