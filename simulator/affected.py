"""Whose rate is to be computed again after a change: as few flows as possible, yet the result is exact.

Rates are right when every flow is held: by its own limit, or by a link of its path that is full, on which no
flow of its level gets more and none of a lower level gets anything. There is only one such allocation, so it
is enough to keep that condition. A change first marks the flows that it may have freed; computing their rates
(`simulator.waterfill`, `simulator.perlink`) then reaches others, until all are held again. Most changes reach
a handful of flows, however large the fabric.
"""

from __future__ import annotations

import numpy as np

from simulator.agenda import put
from simulator.compiled import compiled
from simulator.state import NONE, WAITING, State

MARKED, SOLVED, GROWING = 1, 2, 3
"""A flow's place in the computation: it waits for it; it has its rate, in ``fresh``; it is being filled."""

SLIGHT = 1e-11
"""Rates below, or differing by, this part of a link's capacity are rounding."""


@compiled
def enqueue(s: State, flow: int) -> None:
    """Put ``flow`` into its component's queue."""
    component = s.component[flow]
    at = s.queue_last[component]
    if at == s.queue_first[component]:
        s.waiting[s.counts[WAITING]] = component
        s.counts[WAITING] += 1
    s.queue[at] = flow
    s.queue_last[component] = at + 1


@compiled
def mark(s: State, flow: int) -> None:
    """Put ``flow`` among those whose rate is to be computed again."""
    if not s.marked[flow]:
        s.marked[flow] = MARKED
        enqueue(s, flow)


@compiled
def mark_held(s: State, flow: int) -> None:
    """Mark the flows that a link of ``flow``'s path holds: what ``flow`` does there may free them."""
    for entry in range(s.near[flow], s.far[flow]):
        link = s.entry_link[entry]
        for at in range(s.first[link], s.last[link]):
            other = s.rider[at]
            if s.held[other] == link:
                mark(s, other)


@compiled
def join(s: State, flow: int) -> None:
    """Put the entries of ``flow`` among their links' members."""
    for entry in range(s.near[flow], s.far[flow]):
        link = s.entry_link[entry]
        seat = s.last[link]
        s.members[seat] = entry
        s.rider[seat] = flow
        s.seat[entry] = seat
        s.last[link] = seat + 1


@compiled
def attach(s: State, flow: int) -> None:
    """Let ``flow`` take part, with what it has left ``since`` now: link its entries, and mark it."""
    s.active[flow] = 1
    s.held[flow] = NONE
    if s.near[flow] < s.far[flow]:
        join(s, flow)
        mark(s, flow)
    else:
        s.rate[flow] = s.limit[flow]
        put(s, flow, s.since[flow] + s.left[flow] / s.limit[flow])


@compiled
def detach(s: State, flow: int) -> None:
    """Take ``flow`` out, and mark the flows that may now get more."""
    mark_held(s, flow)
    s.active[flow] = 0
    s.rate[flow] = 0.0
    put(s, flow, np.inf)
    for entry in range(s.near[flow], s.far[flow]):
        link = s.entry_link[entry]
        seat, last = s.seat[entry], s.last[link] - 1
        moved = s.members[last]
        s.members[seat] = moved
        s.rider[seat] = s.rider[last]
        s.seat[moved] = seat
        s.last[link] = last


@compiled
def drop_inactive(s: State, component: int) -> None:
    """Take flows that have ended since they were marked out of the queue."""
    kept = s.queue_first[component]
    for at in range(kept, s.queue_last[component]):
        flow = s.queue[at]
        if s.active[flow]:
            s.queue[kept] = flow
            kept += 1
        else:
            s.marked[flow] = 0
    s.queue_last[component] = kept


@compiled
def rate_now(s: State, flow: int) -> float:
    """Return the newest rate of ``flow``."""
    return float(s.fresh[flow] if s.marked[flow] == SOLVED else s.rate[flow])


@compiled
def changed(s: State, flow: int) -> bool:
    """Whether a solved flow's rate is another than before."""
    return bool(abs(s.rate[flow] - s.fresh[flow]) > 1e-14 * s.limit[flow])
