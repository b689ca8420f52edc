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

from simulator.affected import GROWING, MARKED, SLIGHT, SOLVED, binds, mark, rate_now
from simulator.compiled import compiled
from simulator.heap import drop_top, insert, lower, raise_top
from simulator.state import AFFECTED, BATCH, HEAP, NONE, OPEN, TOUCHED, State

TIE = 1e-12
"""Relative difference below which two shares are the same number."""


@compiled
def fill_by_level(s: State) -> None:
    """Compute the rates of the marked flows, and of all that they reach, into ``s.fresh``."""
    while True:
        level = -1
        for at in range(s.counts[AFFECTED]):
            flow = s.queue[at]
            if s.marked[flow] == MARKED:
                level = max(level, s.level[s.flow_entry[flow]])
        if level < 0:
            break
        fill(s, level)
        for at in range(s.counts[TOUCHED]):
            link = s.touched[at]
            s.weight[link] = NONE
            if level > 0:
                hand_on(s, link, level)


@compiled
def fill(s: State, level: int) -> None:
    """Compute the rates of the marked flows of ``level``, and of those of this level that they reach."""
    least = begin(s, level)
    share = 0.0
    while s.counts[OPEN] > 0:
        link = narrowest(s)
        if link == NONE or least <= s.key[0]:
            least = stop_at_limit(s, level, least)
            continue
        if s.key[0] + s.capacity[link] * SLIGHT < s.most[link]:
            least = min(least, take_greedy(s, link, level))
            continue
        if s.key[0] > share * (1 + TIE):  # else the two are one
            share = s.key[0]
        entry = s.head[link]
        while entry != NONE:
            flow = s.entry_flow[entry]
            if s.marked[flow] == GROWING:
                least = min(least, stop(s, flow, share, link, level))
            entry = s.after[entry]
        s.residual[link] = 0.0


@compiled
def begin(s: State, level: int) -> float:
    """Have the marked flows of ``level`` grow from nothing; return their least limit."""
    s.counts[BATCH] = s.counts[TOUCHED] = s.counts[HEAP] = s.counts[OPEN] = 0
    least = np.inf
    for at in range(s.counts[AFFECTED]):
        flow = s.queue[at]
        if s.marked[flow] == MARKED and s.level[s.flow_entry[flow]] == level:
            least = min(least, s.limit[flow])
            grow(s, flow, level)
    for at in range(s.counts[TOUCHED]):
        link = s.touched[at]
        insert(s, link, s.residual[link] / s.weight[link])
    return float(least)


@compiled
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
        if s.weight[link] == NONE:
            if not binds(s, link):
                continue
            open_link(s, link, level)
        elif kept:
            s.residual[link] += s.rate[flow] * s.width[flow]
        s.weight[link] += s.width[flow]


@compiled
def open_link(s: State, link: int, level: int) -> None:
    """List ``link`` in ``touched``, with what higher levels, and those that keep their rates, leave of it."""
    room = s.capacity[link]
    most = 0.0
    holds = 0
    entry = s.head[link]
    while entry != NONE:
        flow = s.entry_flow[entry]
        own = s.level[entry]
        if own > level:
            room -= rate_now(s, flow) * s.width[flow]
        elif own == level and not s.marked[flow]:
            rate = s.rate[flow]
            room -= rate * s.width[flow]
            if rate > most:
                most = rate
            if s.held[flow] == link:
                holds = 1
        entry = s.after[entry]
    s.most[link] = most
    s.holds[link] = holds
    s.residual[link] = room if abs(room) > s.capacity[link] * TIE else 0.0
    s.weight[link] = 0.0
    s.spot[link] = NONE
    s.touched[s.counts[TOUCHED]] = link
    s.counts[TOUCHED] += 1


@compiled
def take_in(s: State, flow: int, level: int) -> float:
    """Have ``flow``, which was to keep its rate, grow from here on; return its limit."""
    grow(s, flow, level)
    for entry in range(s.near[flow], s.far[flow]):
        link = s.entry_link[entry]
        if s.weight[link] != NONE:
            share = s.residual[link] / s.weight[link]
            if s.spot[link] == NONE:
                insert(s, link, share)
            elif share < s.key[s.spot[link]]:
                lower(s, link, share)
    return float(s.limit[flow])


@compiled
def narrowest(s: State) -> int:
    """Return the link that fills up first, NONE where no more will.

    While flows stop, what a link has for each of the others only grows, so it is enough to look at it again
    when it comes up.
    """
    while s.counts[HEAP] > 0:
        link = s.narrow[0]
        if s.weight[link] == 0:
            drop_top(s)
            continue
        share = s.residual[link] / s.weight[link]
        if share <= s.key[0]:
            s.key[0] = share
            return int(link)
        raise_top(s, share)
    return NONE


@compiled
def take_greedy(s: State, link: int, level: int) -> float:
    """Take in those who keep more than their share of ``link``, which is at the top of the heap.

    Returns their least limit (inf: nobody).
    """
    least = np.inf
    share = s.key[0] + s.capacity[link] * SLIGHT
    most = 0.0
    entry = s.head[link]
    while entry != NONE:
        flow = s.entry_flow[entry]
        if not s.marked[flow] and s.level[entry] == level:
            if s.rate[flow] > share:
                least = min(least, take_in(s, flow, level))
            else:
                most = max(most, s.rate[flow])
        entry = s.after[entry]
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
            following = min(following, stop(s, flow, limit, NONE, level))
        else:
            s.batch[kept] = flow
            kept += 1
            following = min(following, limit)
    s.counts[BATCH] = kept
    return float(following)


@compiled
def stop(s: State, flow: int, rate: float, link: int, level: int) -> float:
    """Leave ``flow`` at ``rate``, where ``link`` holds it.

    Takes in those who may get what it gives up, and returns their least limit (inf: nobody).
    """
    s.fresh[flow] = rate
    s.held[flow] = link
    s.marked[flow] = SOLVED
    s.counts[OPEN] -= 1
    taken = rate * s.width[flow]
    for entry in range(s.near[flow], s.far[flow]):
        own = s.entry_link[entry]
        if s.weight[own] != NONE:
            s.weight[own] -= s.width[flow]
            room = s.residual[own] - taken
            s.residual[own] = room if room > s.capacity[own] * TIE else 0.0
    least = np.inf
    if s.rate[flow] - rate > s.limit[flow] * SLIGHT:
        for entry in range(s.near[flow], s.far[flow]):
            own = s.entry_link[entry]
            if s.weight[own] == NONE or not s.holds[own]:
                continue
            s.holds[own] = 0
            other = s.head[own]
            while other != NONE:
                third = s.entry_flow[other]
                if not s.marked[third] and s.held[third] == own and s.level[other] == level:
                    least = min(least, take_in(s, third, level))
                other = s.after[other]
    return float(least)


@compiled
def hand_on(s: State, link: int, level: int) -> None:
    """Mark the flows of lower levels that ``link`` now has less for, or no longer holds back."""
    used = 0.0
    lower_ones = False
    entry = s.head[link]
    while entry != NONE:
        flow = s.entry_flow[entry]
        if s.level[entry] < level:
            used += s.rate[flow] * s.width[flow]
            lower_ones = True
        entry = s.after[entry]
    slight = s.capacity[link] * SLIGHT
    short = used > s.residual[link] + slight
    spare = used < s.residual[link] - slight
    if not lower_ones or not (short or spare):
        return
    entry = s.head[link]
    while entry != NONE:
        flow = s.entry_flow[entry]
        reached = (short and s.rate[flow] > slight) or (spare and s.held[flow] == link)
        if reached and not s.marked[flow] and s.level[entry] < level:
            mark(s, flow)
        entry = s.after[entry]
