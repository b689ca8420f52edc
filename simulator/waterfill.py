"""Rates where a flow has one level on all its links: max-min filling, level by level from the top.

One pass is enough, because it takes in others where it reaches them. While the flows whose rates are to be
computed grow together, a flow beside them that keeps its rate is taken in and grows too

- where a link fills up at less than that rate (it would have more than its share), or
- where a flow stops at less than it had, on a link that holds the other back (it may get more).

Either comes to pass before the growing flows have the other's rate, and what is below that does not change. A
level that is done hands on what it changed to the flows of lower levels on its links.
"""

from __future__ import annotations

import numpy as np

from simulator.affected import GROWING, MARKED, SLIGHT, SOLVED, mark, rate_now
from simulator.compiled import compiled, inlined
from simulator.least import LANES, least_of_lanes
from simulator.state import BATCH, NONE, OPEN, TOUCHED, State

TIE = 1e-12
"""Relative difference below which two shares are the same number."""


@compiled
def fill_by_level(s: State, component: int) -> None:
    """Compute the rates of the component's marked flows, and of all that they reach, into ``s.fresh``."""
    while True:
        level = -1
        for at in range(s.queue_first[component], s.queue_last[component]):
            flow = s.queue[at]
            if s.marked[flow] == MARKED:
                level = max(level, s.rank[flow])
        if level < 0:
            break
        fill(s, component, level)
        for at in range(s.counts[TOUCHED]):
            link = s.touched[at]
            s.spot[link] = NONE
            if level > 0:
                hand_on(s, link, level)


@compiled
def fill(s: State, component: int, level: int) -> None:
    """Compute the rates of the marked flows of ``level``, and of those of this level that they reach."""
    least = begin(s, component, level)
    share = 0.0
    while s.counts[OPEN] > 0:
        at = narrowest(s)
        if at == NONE or least <= s.key[at]:
            least = stop_at_limit(s, level, least)
            continue
        link = s.touched[at]
        if s.key[at] + s.capacity[link] * SLIGHT < s.most[link]:
            least = min(least, take_greedy(s, link, level))
            continue
        if s.key[at] > share * (1 + TIE):  # else the two are one
            share = s.key[at]
        for seat in range(s.first[link], s.last[link]):
            flow = s.rider[seat]
            if s.marked[flow] == GROWING:
                least = min(least, settle(s, flow, share, link, level))
        s.residual[link] = 0.0


@compiled
def begin(s: State, component: int, level: int) -> float:
    """Have the marked flows of ``level`` grow from nothing; return their least limit."""
    s.counts[BATCH] = s.counts[TOUCHED] = s.counts[OPEN] = 0
    least = np.inf
    for at in range(s.queue_first[component], s.queue_last[component]):
        flow = s.queue[at]
        if s.marked[flow] == MARKED and s.rank[flow] == level:
            least = min(least, s.limit[flow])
            grow(s, flow, level)
    at = 0
    while at < s.counts[TOUCHED]:
        link = s.touched[at]
        at += 1
        if s.residual[link] > 0 or s.most[link] == 0:
            continue
        # It is full of others: the filling would come to it first, and take them in.
        s.most[link] = 0.0
        for seat in range(s.first[link], s.last[link]):
            flow = s.rider[seat]
            if not s.marked[flow] and s.rank[flow] == level and s.rate[flow] > 0:
                least = min(least, s.limit[flow])
                grow(s, flow, level)
    for at in range(s.counts[TOUCHED]):
        link = s.touched[at]
        s.key[at] = max(s.residual[link], 0.0) / s.weight[link]
    return float(least)


@inlined
def grow(s: State, flow: int, level: int) -> None:
    """Count ``flow`` among those that grow."""
    kept = not s.marked[flow]  # so the links that are open have its rate taken off
    mark(s, flow)
    s.marked[flow] = GROWING
    s.batch[s.counts[BATCH]] = flow
    s.counts[BATCH] += 1
    s.counts[OPEN] += 1
    for entry in range(s.near[flow], s.far[flow]):
        link = s.entry_link[entry]
        if s.spot[link] == NONE:
            open_link(s, link, level)
        elif kept:
            s.residual[link] += s.rate[flow] * s.width[flow]
        s.weight[link] += s.width[flow]


@inlined
def open_link(s: State, link: int, level: int) -> None:
    """List ``link`` in ``touched``, with what higher levels, and those that keep their rates, leave of it."""
    used = 0.0
    most = 0.0
    holds = False
    for seat in range(s.first[link], s.last[link]):
        flow = s.rider[seat]
        own = s.rank[flow]
        if own > level:
            used += rate_now(s, flow) * s.width[flow]
        elif own == level:
            # Without a branch that depends on the flow: those are what takes the time.
            keeps = s.marked[flow] == 0
            rate = s.rate[flow] if keeps else 0.0
            used += rate * s.width[flow]
            most = rate if rate > most else most
            holds |= keeps & (s.held[flow] == link)
    room = s.capacity[link] - used
    s.most[link] = most
    s.holds[link] = holds
    s.residual[link] = room if abs(room) > s.capacity[link] * TIE else 0.0
    s.weight[link] = 0.0
    at = s.counts[TOUCHED]
    s.spot[link] = at
    s.touched[at] = link
    s.counts[TOUCHED] = at + 1
    if at % LANES == 0:
        for place in range(at, at + LANES):
            s.key[place] = np.inf


@compiled
def take_in(s: State, flow: int, level: int) -> float:
    """Have ``flow``, which was to keep its rate, grow from here on; return its limit."""
    grow(s, flow, level)
    for entry in range(s.near[flow], s.far[flow]):
        link = s.entry_link[entry]
        at = s.spot[link]
        if at != NONE:
            s.key[at] = max(s.residual[link], 0.0) / s.weight[link]
    return float(s.limit[flow])


@inlined
def narrowest(s: State) -> int:
    """Return the place in ``touched`` of the link that fills up first, NONE where no more will."""
    found, key = NONE, np.inf
    for first in range(0, s.counts[TOUCHED], LANES):
        at, lowest = least_of_lanes(s.key, first)
        found = at if lowest < key else found
        key = lowest if lowest < key else key
    return found


@compiled
def take_greedy(s: State, link: int, level: int) -> float:
    """Take in those who keep more than their share of ``link``, which fills up first.

    Returns their least limit (inf: nobody).
    """
    least = np.inf
    share = s.key[s.spot[link]] + s.capacity[link] * SLIGHT
    most = 0.0
    for seat in range(s.first[link], s.last[link]):
        flow = s.rider[seat]
        if not s.marked[flow] and s.rank[flow] == level:
            if s.rate[flow] > share:
                least = min(least, take_in(s, flow, level))
            else:
                most = max(most, s.rate[flow])
    s.most[link] = most
    return float(least)


@compiled
def stop_at_limit(s: State, level: int, least: float) -> float:
    """Stop the flows whose limit is ``least``; return the least limit of the others."""
    edge = least * (1 + TIE)
    following = np.inf
    kept = 0
    at = 0
    while at < s.counts[BATCH]:
        flow = s.batch[at]
        at += 1
        if s.marked[flow] != GROWING:
            continue
        limit = s.limit[flow]
        if limit <= edge:
            following = min(following, settle(s, flow, limit, NONE, level))
        else:
            s.batch[kept] = flow
            kept += 1
            following = min(following, limit)
    s.counts[BATCH] = kept
    return float(following)


@inlined
def settle(s: State, flow: int, rate: float, link: int, level: int) -> float:
    """Leave ``flow`` at ``rate``, where ``link`` holds it.

    Takes in those who may get what it gives up, and returns their least limit (inf: nobody).
    """
    stop(s, flow, rate, link)
    return give_up(s, flow, level) if s.rate[flow] - rate > s.limit[flow] * SLIGHT else np.inf


@inlined
def stop(s: State, flow: int, rate: float, link: int) -> None:
    """Leave ``flow`` at ``rate``, where ``link`` holds it."""
    s.fresh[flow] = rate
    s.held[flow] = link
    s.marked[flow] = SOLVED
    s.counts[OPEN] -= 1
    taken = rate * s.width[flow]
    for entry in range(s.near[flow], s.far[flow]):
        own = s.entry_link[entry]
        at = s.spot[own]
        if at != NONE:
            weight = s.weight[own] - s.width[flow]
            room = s.residual[own] - taken
            room = room if room > s.capacity[own] * TIE else 0.0
            s.weight[own] = weight
            s.residual[own] = room
            s.key[at] = (room if weight > 0 else np.inf) / max(weight, 1.0)


@compiled
def give_up(s: State, flow: int, level: int) -> float:
    """Take in those who may get what ``flow`` had more than it has now; return their least limit."""
    least = np.inf
    for entry in range(s.near[flow], s.far[flow]):
        own = s.entry_link[entry]
        if s.spot[own] == NONE or not s.holds[own]:
            continue
        s.holds[own] = 0
        for seat in range(s.first[own], s.last[own]):
            third = s.rider[seat]
            if not s.marked[third] and s.held[third] == own and s.rank[third] == level:
                least = min(least, take_in(s, third, level))
    return float(least)


@compiled
def hand_on(s: State, link: int, level: int) -> None:
    """Mark the flows of lower levels that ``link`` now has less for, or no longer holds back."""
    used = 0.0
    lower_ones = False
    for seat in range(s.first[link], s.last[link]):
        flow = s.rider[seat]
        if s.rank[flow] < level:
            used += s.rate[flow] * s.width[flow]
            lower_ones = True
    slight = s.capacity[link] * SLIGHT
    short = used > s.residual[link] + slight
    spare = used < s.residual[link] - slight
    if not lower_ones or not (short or spare):
        return
    for seat in range(s.first[link], s.last[link]):
        flow = s.rider[seat]
        reached = (short and s.rate[flow] > slight) or (spare and s.held[flow] == link)
        if reached and not s.marked[flow] and s.rank[flow] < level:
            mark(s, flow)
