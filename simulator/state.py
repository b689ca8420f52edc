"""The simulator's state: flat arrays over links, jobs, phases, flows and (flow, link) entries.

Rows of a job are contiguous, so each level of the hierarchy job > phase > flow > entry is two offsets away
(``job_phase[j] .. job_phase[j + 1]``). On every link the entries of active flows form a doubly linked list.
Flows of a job that take one path in one phase are one row of ``width`` flows. Times are seconds, volumes
bytes per flow, rates bytes per second and flow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NONE = -1
"""No entry: the end of a linked list."""


class State(NamedTuple):
    """Everything the compiled loops read and write."""

    # links
    capacity: Floats
    demand: Floats
    """What the active flows on the link could send at most, together: it binds only above ``capacity``."""
    head: Ints
    # jobs
    job_phase: Ints
    done: Ints
    target: Ints
    open_phases: Ints
    next_due: Floats
    ended: Floats
    """When the job's last iteration ended; inf while it runs."""
    jitter: Floats
    """Relative half-width of its compute phases' spread."""
    draw: Ints
    """Where in ``noise`` its draws start."""
    cycle: Floats
    """The length of the iterations of a job that is to start them at certain times (0: at any)."""
    offset: Floats
    """Those times: this one, and every ``cycle`` after it."""
    shift_at: Floats
    """When it may next be delayed for that; -inf where it never was."""
    paused: Floats
    """When its next iteration starts; inf while one runs."""
    # phases
    phase_flow: Ints
    phase_next: Ints
    duration: Floats
    slack: Floats
    needs: Ints
    missing: Ints
    open_flows: Ints
    timer: Floats
    successor: Ints
    """Phases that wait for this one, counted from their job's first."""
    # flows
    flow_job: Ints
    flow_entry: Ints
    width: Floats
    volume: Floats
    limit: Floats
    """The most a flow of the row can get: the smallest capacity on its path over ``width``."""
    active: Ints
    early: Ints
    """1 while the flow may wait without harm (slack): it then runs at level 0."""
    asleep: Ints
    """1 while the flow stands still because its level changed; ``due`` is when it goes on."""
    left: Floats
    rate: Floats
    fresh: Floats
    """The rate just computed, before it is put in force."""
    held: Ints
    """The link that holds the flow to its rate, NONE where that is its limit."""
    since: Floats
    due: Floats
    # entries
    entry_link: Ints
    entry_flow: Ints
    level: Ints
    after: Ints
    before: Ints
    grant: Floats
    # scratch and globals
    noise: Floats
    queue: Ints
    queue_jobs: Ints
    batch: Ints
    marked: Ints
    job_marked: Ints
    touched: Ints
    residual: Floats
    weight: Floats
    full: Ints
    wanted: Floats
    counts: Ints
    """[affected flows in ``queue``, dirty jobs, events so far, 1 where levels differ along a path."""


AFFECTED, DIRTY, EVENTS, PER_LINK = range(4)
"""Places in ``State.counts``."""
