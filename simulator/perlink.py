"""Rates where a flow's level differs along its path.

No order of levels fits then: a flow may go before another on one link and beside it on the next. Each link
offers every flow what it could have there, given what the flow's other links offer it; the offers are
revised, link by link, until none changes (after Charny's distributed max-min algorithm, MIT 1994, with strict
priorities within each link). At rest every flow is held by a full link on which nothing that goes after it
gets anything and nobody beside it gets more: the same condition that defines the rates with one level per
flow. Should levels that wait for each other in a circle keep the offers moving, the last are used as far as
the links have room.
"""

from __future__ import annotations

import numpy as np

from simulator.affected import SOLVED, level_of
from simulator.compiled import compiled
from simulator.state import AFFECTED, NONE, State
from simulator.waterfill import TIE, gather_links

MAX_SWEEPS = 500
"""Where to stop revising offers; some tens are usual."""


@compiled
def offered_elsewhere(s: State, own: int) -> float:
    """Return the most that entry ``own``'s flow could use there: the least of its other links' offers."""
    flow = s.entry_flow[own]
    least = s.limit[flow]
    for entry in range(s.flow_entry[flow], s.flow_entry[flow + 1]):
        if entry != own and s.grant[entry] < least:
            least = s.grant[entry]
    return float(least)


@compiled
def sort_entries(s: State, link: int, wanted: np.ndarray) -> int:
    """Put the link's affected entries into ``batch``: by falling level, then by rising ``wanted``."""
    size = 0
    entry = s.head[link]
    while entry != NONE:
        if s.marked[s.entry_flow[entry]] == SOLVED:
            wanted[entry] = offered_elsewhere(s, entry)
            level = level_of(s, entry)
            at = size
            while at > 0:
                other = s.batch[at - 1]
                above = level_of(s, other)
                if above > level or (above == level and wanted[other] <= wanted[entry]):
                    break
                s.batch[at] = other
                at -= 1
            s.batch[at] = entry
            size += 1
        entry = s.after[entry]
    return size


@compiled
def revise(s: State, link: int, wanted: np.ndarray) -> bool:
    """Revise the offers of ``link``; return whether any changed."""
    size = sort_entries(s, link, wanted)
    room = s.residual[link]
    changed = False
    start = 0
    while start < size:
        level = level_of(s, s.batch[start])
        stop = start
        weight = 0.0
        while stop < size and level_of(s, s.batch[stop]) == level:
            weight += s.width[s.entry_flow[s.batch[stop]]]
            stop += 1
        # Those that want less than an equal share get what they want; the rest share equally.
        at = start
        while at < stop:
            entry = s.batch[at]
            width = s.width[s.entry_flow[entry]]
            if wanted[entry] * weight >= room * (1 - TIE):
                break
            room -= wanted[entry] * width
            weight -= width
            at += 1
        share = room / weight if at < stop else np.inf
        for place in range(start, stop):
            entry = s.batch[place]
            # All are content: each could still have what is left beside its own.
            offer = share if at < stop else wanted[entry] + room / s.width[s.entry_flow[entry]]
            old = s.grant[entry]
            if old != offer and (np.isinf(old) or abs(old - offer) > TIE * max(old, offer)):
                s.grant[entry] = offer
                changed = True
        if at < stop or room < s.capacity[link] * TIE:
            room = 0.0
        start = stop
    return changed


@compiled
def clamp(s: State) -> None:
    """Take the computed rates in turn, each no higher than its links still have room for."""
    for at in range(s.counts[AFFECTED]):
        flow = s.queue[at]
        first, last = s.flow_entry[flow], s.flow_entry[flow + 1]
        for entry in range(first, last):
            link = s.entry_link[entry]
            if s.weight[link] != NONE:
                s.fresh[flow] = min(s.fresh[flow], s.residual[link] / s.width[flow])
        for entry in range(first, last):
            s.residual[s.entry_link[entry]] -= s.fresh[flow] * s.width[flow]


@compiled
def fill_per_link(s: State, wanted: np.ndarray) -> None:
    """Compute the affected flows' rates into ``s.fresh``; ``wanted`` is scratch, one place per entry."""
    links = gather_links(s)
    total = s.counts[AFFECTED]
    for at in range(total):
        flow = s.queue[at]
        for entry in range(s.flow_entry[flow], s.flow_entry[flow + 1]):
            s.grant[entry] = np.inf
    changed = True
    sweeps = 0
    while changed and sweeps < MAX_SWEEPS:
        changed = False
        sweeps += 1
        for at in range(links):
            if revise(s, s.touched[at], wanted):
                changed = True
    for at in range(total):
        flow = s.queue[at]
        least = s.limit[flow]
        s.held[flow] = NONE
        for entry in range(s.flow_entry[flow], s.flow_entry[flow + 1]):
            if s.grant[entry] < least * (1 - TIE):
                least = s.grant[entry]
                s.held[flow] = s.entry_link[entry]
        s.fresh[flow] = least
    if changed:
        clamp(s)
    for at in range(links):
        s.weight[s.touched[at]] = NONE
