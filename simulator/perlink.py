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

from simulator.affected import SLIGHT, SOLVED, changed, mark, rate_now
from simulator.compiled import compiled
from simulator.state import NONE, TOUCHED, State
from simulator.waterfill import TIE

MAX_SWEEPS = 500
"""Where to stop revising offers; some tens are usual."""


@compiled
def gather_links(s: State, component: int) -> None:
    """List in ``touched`` the binding links of the affected flows, with what the others leave there.

    The affected flows count as solved from here on.
    """
    links = 0
    for at in range(s.queue_first[component], s.queue_last[component]):
        s.marked[s.queue[at]] = SOLVED
    for at in range(s.queue_first[component], s.queue_last[component]):
        flow = s.queue[at]
        for entry in range(s.near[flow], s.far[flow]):
            link = s.entry_link[entry]
            if s.spot[link] != NONE:
                continue
            s.spot[link] = links
            s.touched[links] = link
            links += 1
            room = s.capacity[link]
            for seat in range(s.first[link], s.last[link]):
                third = s.rider[seat]
                if s.marked[third] != SOLVED:
                    room -= s.rate[third] * s.width[third]
            s.residual[link] = room if room > s.capacity[link] * TIE else 0.0
    s.counts[TOUCHED] = links


@compiled
def offered_elsewhere(s: State, own: int) -> float:
    """Return the most that entry ``own``'s flow could use there: the least of its other links' offers."""
    flow = s.entry_flow[own]
    least = s.limit[flow]
    for entry in range(s.near[flow], s.far[flow]):
        if entry != own and s.grant[entry] < least:
            least = s.grant[entry]
    return float(least)


@compiled
def sort_entries(s: State, link: int, wanted: np.ndarray) -> int:
    """Put the link's affected entries into ``batch``: by falling level, then by rising ``wanted``."""
    size = 0
    for seat in range(s.first[link], s.last[link]):
        entry = s.members[seat]
        if s.marked[s.entry_flow[entry]] == SOLVED:
            wanted[entry] = offered_elsewhere(s, entry)
            level = s.level[entry]
            at = size
            while at > 0:
                other = s.batch[at - 1]
                above = s.level[other]
                if above > level or (above == level and wanted[other] <= wanted[entry]):
                    break
                s.batch[at] = other
                at -= 1
            s.batch[at] = entry
            size += 1
    return size


@compiled
def level_at(s: State, place: int) -> int:
    """Return the level of an entry in ``batch``."""
    return int(s.level[s.batch[place]])


@compiled
def revise(s: State, link: int, wanted: np.ndarray) -> bool:
    """Revise the offers of ``link``; return whether any changed."""
    size = sort_entries(s, link, wanted)
    room = s.residual[link]
    changed = False
    start = 0
    while start < size:
        level = level_at(s, start)
        stop = start
        weight = 0.0
        while stop < size and level_at(s, stop) == level:
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
def clamp(s: State, component: int) -> None:
    """Take the computed rates in turn, each no higher than its links still have room for."""
    for at in range(s.queue_first[component], s.queue_last[component]):
        flow = s.queue[at]
        first, last = s.near[flow], s.far[flow]
        for entry in range(first, last):
            link = s.entry_link[entry]
            if s.spot[link] != NONE:
                s.fresh[flow] = min(s.fresh[flow], s.residual[link] / s.width[flow])
        for entry in range(first, last):
            s.residual[s.entry_link[entry]] -= s.fresh[flow] * s.width[flow]


@compiled
def fill_per_link(s: State, component: int, wanted: np.ndarray) -> None:
    """Compute the affected flows' rates into ``s.fresh``; ``wanted`` is scratch, one place per entry."""
    gather_links(s, component)
    for at in range(s.queue_first[component], s.queue_last[component]):
        flow = s.queue[at]
        for entry in range(s.near[flow], s.far[flow]):
            s.grant[entry] = np.inf
    changed = True
    sweeps = 0
    while changed and sweeps < MAX_SWEEPS:
        changed = False
        sweeps += 1
        for at in range(s.counts[TOUCHED]):
            if revise(s, s.touched[at], wanted):
                changed = True
    for at in range(s.queue_first[component], s.queue_last[component]):
        flow = s.queue[at]
        least = s.limit[flow]
        s.held[flow] = NONE
        for entry in range(s.near[flow], s.far[flow]):
            if s.grant[entry] < least * (1 - TIE):
                least = s.grant[entry]
                s.held[flow] = s.entry_link[entry]
        s.fresh[flow] = least
    if changed:
        clamp(s, component)
    for at in range(s.counts[TOUCHED]):
        s.spot[s.touched[at]] = NONE


@compiled
def extend(s: State, component: int) -> bool:
    """Mark the flows that the rates just computed leave wrong; return whether there are any."""
    before = s.queue_last[component]
    for at in range(s.counts[TOUCHED]):
        check_link(s, s.touched[at])
    return bool(s.queue_last[component] > before)


@compiled
def check_link(s: State, link: int) -> None:
    """Mark the flows on ``link``, of those not just solved, that it wrongly holds or lets have too much."""
    slight = s.capacity[link] * SLIGHT
    used = 0.0
    lowest, most = 1 << 62, 0.0  # the lowest level that gets anything, and the most that a flow there gets
    first, least = -1, 0.0  # the first level of solved flows held here, and the least that one of those gets
    news = False  # whether a solved flow is held here, or has another rate than before
    others = False  # whether there are flows that were not solved
    for seat in range(s.first[link], s.last[link]):
        entry = s.members[seat]
        flow = s.entry_flow[entry]
        level, rate = s.level[entry], rate_now(s, flow)
        used += rate * s.width[flow]
        if rate > slight:
            if level < lowest:
                lowest, most = level, rate
            elif level == lowest and rate > most:
                most = rate
        if s.marked[flow] != SOLVED:
            others = True
        elif s.held[flow] == link:
            news = True
            if level > first:
                first, least = level, rate
            elif level == first and rate < least:
                least = rate
        elif changed(s, flow):
            news = True
    if not (news and others):
        return
    full = used >= s.capacity[link] - 100 * slight
    for seat in range(s.first[link], s.last[link]):
        entry = s.members[seat]
        flow = s.entry_flow[entry]
        if not s.marked[flow]:
            level, rate = s.level[entry], s.rate[flow]
            freed = s.held[flow] == link and (
                not full or level > lowest or (level == lowest and rate < most - slight)
            )
            greedy = (level < first and rate > slight) or (level == first and rate > least + slight)
            if freed or greedy:
                mark(s, flow)
