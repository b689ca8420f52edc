"""Rates: max-min filling of each level over what higher levels left (and over what is not computed again)."""

from __future__ import annotations

import numpy as np

from simulator.affected import SOLVED, binds, level_of
from simulator.compiled import compiled
from simulator.state import AFFECTED, NONE, State

TIE = 1e-12
"""Relative difference below which two shares are the same number."""


@compiled
def gather_links(s: State) -> int:
    """List in ``touched`` the binding links of the affected flows, with what the others leave there.

    Returns their number. The affected flows count as solved from here on.
    """
    links = 0
    for at in range(s.counts[AFFECTED]):
        s.marked[s.queue[at]] = SOLVED
    for at in range(s.counts[AFFECTED]):
        flow = s.queue[at]
        for entry in range(s.flow_entry[flow], s.flow_entry[flow + 1]):
            link = s.entry_link[entry]
            if s.weight[link] != NONE or not binds(s, link):
                continue
            s.weight[link] = 0.0
            s.touched[links] = link
            links += 1
            room = s.capacity[link]
            other = s.head[link]
            while other != NONE:
                third = s.entry_flow[other]
                if s.marked[third] != SOLVED:
                    room -= s.rate[third] * s.width[third]
                other = s.after[other]
            s.residual[link] = room if room > s.capacity[link] * TIE else 0.0
    return links


@compiled
def fill_by_level(s: State) -> None:
    """Compute the affected flows' rates into ``s.fresh`` where a flow has one level on all its links."""
    links = gather_links(s)
    total = s.counts[AFFECTED]
    ceiling = 1 << 62
    remaining = total
    while remaining > 0:
        top = -1
        for at in range(total):
            level = level_of(s, s.flow_entry[s.queue[at]])
            if top < level < ceiling:
                top = level
        size = 0
        for at in range(total):
            flow = s.queue[at]
            if level_of(s, s.flow_entry[flow]) == top:
                s.batch[size] = flow
                size += 1
        fill(s, size, links)
        remaining -= size
        ceiling = top
    for at in range(links):
        s.weight[s.touched[at]] = NONE


@compiled
def fill(s: State, size: int, links: int) -> None:
    """Max-min fill the first ``size`` flows of ``batch`` over ``residual``, which loses what they take."""
    for at in range(size):
        flow = s.batch[at]
        for entry in range(s.flow_entry[flow], s.flow_entry[flow + 1]):
            link = s.entry_link[entry]
            if s.weight[link] != NONE:
                s.weight[link] += s.width[flow]
    while size > 0:
        share = np.inf
        for at in range(links):
            link = s.touched[at]
            if s.weight[link] > 0 and s.residual[link] < share * s.weight[link]:
                share = s.residual[link] / s.weight[link]
        for at in range(size):
            share = min(share, s.limit[s.batch[at]])
        edge = share * (1 + TIE)
        for at in range(links):
            link = s.touched[at]
            s.full[link] = 1 if s.weight[link] > 0 and s.residual[link] <= edge * s.weight[link] else 0
        kept = 0
        for at in range(size):
            flow = s.batch[at]
            stop = s.limit[flow] <= edge
            s.held[flow] = NONE
            for entry in range(s.flow_entry[flow], s.flow_entry[flow + 1]):
                if not stop and s.full[s.entry_link[entry]]:
                    stop = True
                    s.held[flow] = s.entry_link[entry]
            if not stop:
                s.batch[kept] = flow
                kept += 1
                continue
            s.fresh[flow] = share
            for entry in range(s.flow_entry[flow], s.flow_entry[flow + 1]):
                link = s.entry_link[entry]
                if s.weight[link] != NONE:
                    s.weight[link] -= s.width[flow]
                    s.residual[link] -= share * s.width[flow]
        for at in range(links):
            link = s.touched[at]
            if s.full[link] or s.residual[link] < s.capacity[link] * TIE:
                s.residual[link] = 0.0
            s.full[link] = 0
        size = kept
