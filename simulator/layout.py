"""What follows from which flow crosses which links: computed when jobs come or go, and when paths change.

Links that could not be full even if all flows on them were active at once hold nobody, and are left out at
both ends of a path. What is left takes the flows apart into components: no rate depends on what another
component does. (In a leaf-spine fabric, where an uplink and the downlinks behind it are of one spine, these
are the spines.)
"""

from __future__ import annotations

from simulator.affected import enqueue, join
from simulator.agenda import build
from simulator.compiled import compiled
from simulator.state import FLOWS, LINKS, WAITING, State

ROUNDING = 1 + 1e-9
"""By how much demands may pass a capacity before they count as more."""


@compiled
def lay(s: State) -> None:
    """Have ``near``, ``far``, components, the links' lists and the agenda follow from the other fields."""
    trim(s)
    split(s)
    first = 0
    for link in range(s.counts[LINKS]):
        size = s.last[link]
        s.first[link] = s.last[link] = first
        first += size
    for flow in range(s.counts[FLOWS]):
        s.rank[flow] = s.level[s.flow_entry[flow]]
        if s.active[flow]:
            join(s, flow)
        if s.marked[flow]:
            enqueue(s, flow)
    build(s)


@compiled
def trim(s: State) -> None:
    """Find which links of each path could ever be full, and count the entries on each."""
    demand = s.residual  # scratch
    for link in range(s.counts[LINKS]):
        s.last[link] = 0
        demand[link] = 0.0
    for flow in range(s.counts[FLOWS]):
        for entry in range(s.flow_entry[flow], s.flow_entry[flow + 1]):
            demand[s.entry_link[entry]] += s.limit[flow] * s.width[flow]
    for flow in range(s.counts[FLOWS]):
        near, far = s.flow_entry[flow], s.flow_entry[flow + 1]
        while near < far and demand[s.entry_link[near]] <= s.capacity[s.entry_link[near]] * ROUNDING:
            near += 1
        while near < far and demand[s.entry_link[far - 1]] <= s.capacity[s.entry_link[far - 1]] * ROUNDING:
            far -= 1
        s.near[flow], s.far[flow] = near, far
        for entry in range(near, far):
            s.last[s.entry_link[entry]] += 1


@compiled
def split(s: State) -> None:
    """Find the components of the flows, and lay out their queues."""
    parent = s.touched  # scratch
    for link in range(s.counts[LINKS]):
        parent[link] = link
        s.queue_last[link] = 0
    for flow in range(s.counts[FLOWS]):
        for entry in range(s.near[flow] + 1, s.far[flow]):
            one, other = root(s, s.entry_link[entry - 1]), root(s, s.entry_link[entry])
            parent[max(one, other)] = min(one, other)
    for flow in range(s.counts[FLOWS]):
        # Where no link could be full the flow is alone, and any of them stands for that.
        at = s.near[flow] if s.near[flow] < s.far[flow] else s.flow_entry[flow]
        s.component[flow] = root(s, s.entry_link[at])
        s.queue_last[s.component[flow]] += 1
    first = 0
    for link in range(s.counts[LINKS]):
        size = s.queue_last[link]
        s.queue_first[link] = s.queue_last[link] = first
        first += size
    s.counts[WAITING] = 0


@compiled
def root(s: State, link: int) -> int:
    """Return the link that stands for the component of ``link``, while `split` joins them in ``touched``."""
    parent = s.touched
    while parent[link] != link:
        parent[link] = parent[parent[link]]
        link = parent[link]
    return int(link)
