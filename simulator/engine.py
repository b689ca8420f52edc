"""The event loop: from one instant at which something ends to the next, rates being constant between."""

from __future__ import annotations

import numpy as np

from simulator.affected import (
    MARKED,
    attach,
    changed,
    detach,
    drop_inactive,
    mark,
    mark_held,
)
from simulator.agenda import first_due, first_time, put, put_job, put_phase
from simulator.compiled import compiled
from simulator.layout import lay
from simulator.perlink import extend, fill_per_link
from simulator.pointer import by_pointer
from simulator.state import (
    ENDED,
    EVENTS,
    FLOWS,
    NOISE,
    NONE,
    PER_LINK,
    PHASES,
    WAITING,
    State,
)
from simulator.waterfill import fill_by_level

SAME_TIME = 1e-12
"""Events closer than this, relative to the time, are one instant (rounding, not order)."""

DRIFT = 0.05
"""A job that starts an iteration this part of it too early or late is delayed again (CASSINI)."""

SHIFT_EVERY = 30.0
"""Seconds between two such delays of a job. CASSINI's paper gives no number; this one is ours."""


@compiled
def give_way(s: State, flow: int, early: bool) -> None:
    """Put ``flow`` at the lowest level, or where it belongs."""
    s.early[flow] = early
    first, last = s.flow_entry[flow], s.flow_entry[flow + 1]
    for entry in range(first, last):
        s.level[entry] = 0 if early else s.given[entry]
    s.rank[flow] = s.level[first]


@compiled
def start_phase(s: State, phase: int, job: int, now: float) -> None:
    """Begin a phase: a timer for computing (or for the slack), the flows for communicating."""
    first, last = s.phase_flow[phase], s.phase_flow[phase + 1]
    s.open_flows[phase] = last - first
    if first == last:
        length = s.duration[phase]
        if s.jitter[job] > 0:
            draw = (s.draw[job] + s.done[job] * 31 + phase - s.job_phase[job]) % NOISE
            length *= 1 + s.jitter[job] * s.noise[draw]
        put_phase(s, phase, now + length)
    else:
        wait = s.slack[phase] > 0
        if wait:
            put_phase(s, phase, now + s.slack[phase])
        for flow in range(first, last):
            if wait:
                give_way(s, flow, True)
            s.left[flow] = s.volume[flow]
            s.since[flow] = now
            attach(s, flow)


@compiled
def start_iteration(s: State, job: int, now: float) -> None:
    """Begin every phase that waits for no other."""
    first, last = s.job_phase[job], s.job_phase[job + 1]
    s.open_phases[job] = last - first
    for phase in range(first, last):
        s.missing[phase] = s.needs[phase]
    for phase in range(first, last):
        if s.needs[phase] == 0:
            start_phase(s, phase, job, now)


@compiled
def until_slot(s: State, job: int, now: float) -> float:
    """Return how long ``job`` is to wait before its next iteration, so that it starts when it should."""
    cycle = s.cycle[job]
    if cycle <= 0 or now < s.shift_at[job]:
        return 0.0
    late = (now - s.offset[job]) % cycle
    allowed = 1e-9 if np.isinf(s.shift_at[job]) else DRIFT
    if late <= allowed * cycle or late >= (1 - allowed) * cycle:
        return 0.0
    s.shift_at[job] = now + SHIFT_EVERY
    return float(cycle - late)


@compiled
def end_phase(s: State, phase: int, job: int, now: float) -> None:
    """Begin what waited for ``phase`` only; after the last one, the next iteration."""
    put_phase(s, phase, np.inf)
    s.counts[EVENTS] += 1
    s.open_phases[job] -= 1
    for at in range(s.phase_next[phase], s.phase_next[phase + 1]):
        following = s.job_phase[job] + s.successor[at]
        s.missing[following] -= 1
        if s.missing[following] == 0:
            start_phase(s, following, job, now)
    if s.open_phases[job] == 0:
        s.done[job] += 1
        if s.done[job] == s.target[job]:
            s.ended[job] = now
            s.counts[ENDED] += 1
        else:
            wait = until_slot(s, job, now)
            if wait > 0:
                put_job(s, job, now + wait)
            else:
                start_iteration(s, job, now)


@compiled
def end_slack(s: State, phase: int) -> None:
    """From now on the phase's flows run at the levels they were given."""
    put_phase(s, phase, np.inf)
    for flow in range(s.phase_flow[phase], s.phase_flow[phase + 1]):
        if s.early[flow]:
            give_way(s, flow, False)
            if s.active[flow]:
                mark_held(s, flow)
                mark(s, flow)


@compiled
def stop(s: State, flow: int, now: float) -> None:
    """Take an active flow out, with what it has left."""
    s.left[flow] = max(s.left[flow] - s.rate[flow] * (now - s.since[flow]), 0.0)
    s.since[flow] = now
    detach(s, flow)


@compiled
def wake(s: State, flow: int, now: float) -> None:
    """Let a flow go on that slept because its level changed."""
    s.asleep[flow] = 0
    s.since[flow] = now
    put(s, flow, np.inf)
    attach(s, flow)


@compiled
def end_flow(s: State, flow: int, now: float) -> None:
    """Take out a flow that has sent everything; the last one of its phase ends that."""
    detach(s, flow)
    s.counts[EVENTS] += 1
    phase = s.flow_phase[flow]
    s.open_flows[phase] -= 1
    if s.open_flows[phase] == 0:
        end_phase(s, phase, s.phase_job[phase], now)


@compiled
def fire(s: State, item: int, now: float) -> None:
    """Let ``item`` of the agenda happen."""
    flows, phases = s.counts[FLOWS], s.counts[PHASES]
    if item < flows:
        if s.asleep[item]:
            wake(s, item, now)
        else:
            end_flow(s, item, now)
    elif item < flows + phases:
        phase = item - flows
        if s.phase_flow[phase] == s.phase_flow[phase + 1]:
            end_phase(s, phase, s.phase_job[phase], now)
        else:
            end_slack(s, phase)
    else:
        job = item - flows - phases
        put_job(s, job, np.inf)
        start_iteration(s, job, now)


@compiled
def reallocate(s: State, now: float) -> None:
    """Compute the rates that changes reach, component by component, and put in force those that are new."""
    for place in range(s.counts[WAITING]):
        component = s.waiting[place]
        drop_inactive(s, component)
        if s.counts[PER_LINK]:
            again = s.queue_last[component] > s.queue_first[component]
            while again:
                fill_per_link(s, component, s.wanted)
                again = extend(s, component)
        else:
            fill_by_level(s, component)
        put_in_force(s, component, now)
    s.counts[WAITING] = 0


@compiled
def put_in_force(s: State, component: int, now: float) -> None:
    """Have the component's flows go on at the rates just computed; its queue is empty then."""
    for at in range(s.queue_first[component], s.queue_last[component]):
        flow = s.queue[at]
        s.marked[flow] = 0
        if not changed(s, flow):
            continue
        old, fresh = s.rate[flow], s.fresh[flow]
        s.left[flow] = max(s.left[flow] - old * (now - s.since[flow]), 0.0)
        s.since[flow] = now
        s.rate[flow] = fresh
        put(s, flow, now + s.left[flow] / fresh if fresh > 0 else np.inf)
    s.queue_last[component] = s.queue_first[component]


@compiled
def advance(s: State, until: float, each: bool) -> float:
    """Run until ``until``, or to the first instant at which a job ended (with ``each``: or anything else).

    Everything due at that instant has then happened. Returns its time; rates are in force from there on.
    """
    s = by_pointer(s)
    latest = until + SAME_TIME * max(1.0, abs(until))
    due = first_time(s)
    while due <= latest:
        now = min(due, until)
        edge = now + SAME_TIME * max(1.0, abs(now))
        while due <= edge:
            # Also what begins at this instant, such as a phase of no length.
            fire(s, first_due(s, due), now)
            due = first_time(s)
        if each or s.counts[ENDED] > 0:
            return float(now)
        reallocate(s, now)
        due = first_time(s)
    return until


@compiled
def refresh(s: State, now: float) -> None:
    """Compute what `advance` left marked: to be called once the levels of that instant are set."""
    reallocate(by_pointer(s), now)


@compiled
def set_levels(s: State, levels: np.ndarray, per_link: bool, now: float, stall: float) -> None:
    """Put ``levels`` (one per entry) in force at ``now``; `refresh` gives the rates.

    An active flow whose level changes stops for ``stall`` seconds.
    """
    s = by_pointer(s)
    for flow in range(s.counts[FLOWS]):
        first, last = s.flow_entry[flow], s.flow_entry[flow + 1]
        same = True
        for entry in range(first, last):
            if s.given[entry] != levels[entry]:
                same = False
        if same:
            continue
        if s.active[flow] and stall > 0:
            stop(s, flow, now)
            s.asleep[flow] = 1
        elif s.active[flow] and not s.early[flow]:
            mark_held(s, flow)
            mark(s, flow)
        if s.asleep[flow]:
            put(s, flow, now + stall)
        for entry in range(first, last):
            s.given[entry] = levels[entry]
        give_way(s, flow, s.early[flow] != 0)
    s.counts[PER_LINK] = 1 if per_link else 0


@compiled
def set_shifts(s: State, offset: np.ndarray, cycle: np.ndarray) -> None:
    """Have each job start its iterations at ``offset`` and every ``cycle`` after that (0: whenever it can).

    A job for which that is new is delayed before its next iteration; after that, when it has drifted.
    """
    s = by_pointer(s)
    for job in range(offset.size):
        if s.offset[job] != offset[job] or s.cycle[job] != cycle[job]:
            s.offset[job] = offset[job]
            s.cycle[job] = cycle[job]
            s.shift_at[job] = -np.inf


@compiled
def reroute(s: State, links: np.ndarray, now: float) -> None:
    """Put every entry on its link of ``links``; flows keep what they have left. `refresh` gives the rates."""
    p = by_pointer(s)
    for flow in range(p.counts[FLOWS]):
        first, last = p.flow_entry[flow], p.flow_entry[flow + 1]
        same = True
        least = np.inf
        for entry in range(first, last):
            same = same and p.entry_link[entry] == links[entry]
            least = min(least, p.capacity[links[entry]])
        if same:
            continue
        if p.active[flow]:
            stop(p, flow, now)
            p.active[flow] = 1
            p.held[flow] = NONE
            p.marked[flow] = MARKED
        p.limit[flow] = least / p.width[flow]
        for entry in range(first, last):
            p.entry_link[entry] = links[entry]
    lay(s)


@compiled
def start_jobs(s: State, jobs: np.ndarray, now: float) -> None:
    """Begin the first iteration of ``jobs``; `refresh` gives the rates."""
    s = by_pointer(s)
    for job in jobs:
        start_iteration(s, job, now)
