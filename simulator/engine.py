"""The event loop: from one instant at which something ends to the next, rates being constant between."""

from __future__ import annotations

import numpy as np

from simulator.affected import attach, changed, detach, drop_inactive, extend, mark, mark_held
from simulator.compiled import compiled
from simulator.perlink import fill_per_link
from simulator.pointer import by_pointer
from simulator.state import AFFECTED, DIRTY, EVENTS, PER_LINK, State
from simulator.waterfill import fill_by_level

SAME_TIME = 1e-12
"""Events closer than this, relative to the time, are one instant (rounding, not order)."""

DRIFT = 0.05
"""A job that starts an iteration this part of it too early or late is delayed again (CASSINI)."""

SHIFT_EVERY = 30.0
"""Seconds between two such delays of a job. CASSINI's paper gives no number; this one is ours."""


@compiled
def touch_job(s: State, job: int) -> None:
    """Have the job's next due time looked up again."""
    if not s.job_marked[job]:
        s.job_marked[job] = 1
        s.queue_jobs[s.counts[DIRTY]] = job
        s.counts[DIRTY] += 1


@compiled
def start_phase(s: State, phase: int, job: int, now: float) -> None:
    """Begin a phase: a timer for computing (or for the slack), the flows for communicating."""
    first, last = s.phase_flow[phase], s.phase_flow[phase + 1]
    s.open_flows[phase] = last - first
    if first == last:
        length = s.duration[phase]
        if s.jitter[job] > 0:
            draw = (s.draw[job] + s.done[job] * 31 + phase - s.job_phase[job]) % s.noise.size
            length *= 1 + s.jitter[job] * s.noise[draw]
        s.timer[phase] = now + length
    else:
        wait = s.slack[phase] > 0
        s.timer[phase] = now + s.slack[phase] if wait else np.inf
        for flow in range(first, last):
            s.early[flow] = 1 if wait else 0
            s.left[flow] = s.volume[flow]
            s.since[flow] = now
            attach(s, flow)
    touch_job(s, job)


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
    s.timer[phase] = np.inf
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
        else:
            wait = until_slot(s, job, now)
            if wait > 0:
                s.paused[job] = now + wait
            else:
                start_iteration(s, job, now)


@compiled
def end_slack(s: State, phase: int) -> None:
    """From now on the phase's flows run at the levels they were given."""
    s.timer[phase] = np.inf
    for flow in range(s.phase_flow[phase], s.phase_flow[phase + 1]):
        if s.early[flow] and s.active[flow]:
            mark_held(s, flow)
            s.early[flow] = 0
            mark(s, flow)


@compiled
def stop(s: State, flow: int, now: float) -> None:
    """Take an active flow out, with what it has left."""
    s.left[flow] = max(s.left[flow] - s.rate[flow] * (now - s.since[flow]), 0.0)
    s.since[flow] = now
    detach(s, flow)
    touch_job(s, s.flow_job[flow])


@compiled
def wake(s: State, flow: int, now: float) -> None:
    """Let a flow go on that slept because its level changed."""
    s.asleep[flow] = 0
    s.since[flow] = now
    s.due[flow] = np.inf
    attach(s, flow)


@compiled
def fire(s: State, job: int, now: float, edge: float) -> None:
    """Handle everything of ``job`` that is due by ``edge``."""
    if s.paused[job] <= edge:
        s.paused[job] = np.inf
        start_iteration(s, job, now)
    for phase in range(s.job_phase[job], s.job_phase[job + 1]):
        first, last = s.phase_flow[phase], s.phase_flow[phase + 1]
        if s.timer[phase] <= edge:
            if first == last:
                end_phase(s, phase, job, now)
            else:
                end_slack(s, phase)
        if s.open_flows[phase] == 0:
            continue
        for flow in range(first, last):
            if s.due[flow] > edge:
                continue
            if s.asleep[flow]:
                wake(s, flow, now)
            else:
                detach(s, flow)
                s.counts[EVENTS] += 1
                s.open_flows[phase] -= 1
                if s.open_flows[phase] == 0:
                    end_phase(s, phase, job, now)
    touch_job(s, job)


@compiled
def reallocate(s: State, now: float) -> None:
    """Compute the rates that changes reach, and put in force those that are new."""
    drop_inactive(s)
    again = s.counts[AFFECTED] > 0
    while again:
        if s.counts[PER_LINK]:
            fill_per_link(s, s.wanted)
        else:
            fill_by_level(s)
        again = extend(s)
    for at in range(s.counts[AFFECTED]):
        flow = s.queue[at]
        s.marked[flow] = 0
        if not changed(s, flow):
            continue
        old, fresh = s.rate[flow], s.fresh[flow]
        s.left[flow] = max(s.left[flow] - old * (now - s.since[flow]), 0.0)
        s.since[flow] = now
        s.rate[flow] = fresh
        s.due[flow] = now + s.left[flow] / fresh if fresh > 0 else np.inf
        touch_job(s, s.flow_job[flow])
    s.counts[AFFECTED] = 0


@compiled
def settle_due(s: State) -> None:
    """Look up the next due time of every job that changed."""
    for at in range(s.counts[DIRTY]):
        job = s.queue_jobs[at]
        s.job_marked[job] = 0
        due = s.paused[job]
        first, last = s.job_phase[job], s.job_phase[job + 1]
        for phase in range(first, last):
            due = min(due, s.timer[phase])
            if s.open_flows[phase] > 0:
                for flow in range(s.phase_flow[phase], s.phase_flow[phase + 1]):
                    due = min(due, s.due[flow])
        s.next_due[job] = due
    s.counts[DIRTY] = 0


@compiled
def advance(s: State, until: float, each: bool) -> float:
    """Run until ``until``, or to the first instant at which a job ended (with ``each``: or anything else).

    Everything due at that instant has then happened. Returns its time; rates are in force from there on.
    """
    s = by_pointer(s)
    jobs = s.next_due.size
    while True:
        now = np.inf
        for job in range(jobs):
            now = min(now, s.next_due[job])
        if now > until + SAME_TIME * max(1.0, abs(until)):
            return until
        now = min(now, until)
        edge = now + SAME_TIME * max(1.0, abs(now))
        ended = False
        again = True
        while again:
            # A phase of no length ends at the instant it begins.
            for job in range(jobs):
                if s.next_due[job] <= edge:
                    fire(s, job, now, edge)
                    ended = ended or not np.isinf(s.ended[job])
            settle_due(s)
            again = False
            for job in range(jobs):
                if s.next_due[job] <= edge:
                    again = True
        if each or ended:
            return now
        reallocate(s, now)
        settle_due(s)


@compiled
def refresh(s: State, now: float) -> None:
    """Compute what `advance` left marked: to be called once the levels of that instant are set."""
    s = by_pointer(s)
    reallocate(s, now)
    settle_due(s)


@compiled
def set_levels(s: State, levels: np.ndarray, per_link: bool, now: float, stall: float) -> None:
    """Put ``levels`` (one per entry) in force at ``now``; `refresh` gives the rates.

    An active flow whose level changes stops for ``stall`` seconds.
    """
    s = by_pointer(s)
    for flow in range(s.active.size):
        first, last = s.flow_entry[flow], s.flow_entry[flow + 1]
        same = True
        for entry in range(first, last):
            if s.level[entry] != levels[entry]:
                same = False
        if same:
            continue
        if s.active[flow] and stall > 0:
            stop(s, flow, now)
            s.asleep[flow] = 1
        elif s.active[flow]:
            mark_held(s, flow)
            mark(s, flow)
        if s.asleep[flow]:
            s.due[flow] = now + stall
        for entry in range(first, last):
            s.level[entry] = levels[entry]
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
    s = by_pointer(s)
    for flow in range(s.active.size):
        first, last = s.flow_entry[flow], s.flow_entry[flow + 1]
        same = True
        least = np.inf
        for entry in range(first, last):
            same = same and s.entry_link[entry] == links[entry]
            least = min(least, s.capacity[links[entry]])
        if same:
            continue
        moving = s.active[flow]
        if moving:
            stop(s, flow, now)
        s.limit[flow] = least / s.width[flow]
        for entry in range(first, last):
            s.entry_link[entry] = links[entry]
        if moving:
            attach(s, flow)
    settle_due(s)


@compiled
def start_jobs(s: State, jobs: np.ndarray, now: float) -> None:
    """Begin the first iteration of ``jobs``; `refresh` gives the rates."""
    s = by_pointer(s)
    for job in jobs:
        start_iteration(s, job, now)
    settle_due(s)
