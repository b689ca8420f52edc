"""The simulator's state: flat arrays over links, jobs, phases, flows and (flow, link) entries.

Rows of a job are contiguous, so each level of the hierarchy job > phase > flow > entry is two offsets away
(``job_phase[j] .. job_phase[j + 1]``). On every link the entries of active flows are together in ``members``.
Flows of a job that take one path in one phase are one row of ``width`` flows. Times are seconds, volumes
bytes per flow, rates bytes per second and flow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, get_args, get_type_hints

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
"""Numbers of rows, and levels: in few bytes, because what the loops walk over is to stay in the cache."""
Ranks = npt.NDArray[np.int16]
"""Levels of flows."""
Marks = npt.NDArray[np.int8]

NONE = -1
"""No link, or none that flows grow on."""


class State(NamedTuple):
    """Everything the compiled loops read and write."""

    # links
    capacity: Floats
    first: Rows
    """Where the link's entries begin in ``members``."""
    last: Rows
    """One past the last of them."""
    # jobs
    job_phase: Rows
    done: Ints
    target: Ints
    open_phases: Rows
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
    """When its next iteration starts; inf while one runs. Part of ``calendar``, as ``timer`` and ``due``."""
    # phases
    phase_job: Rows
    phase_flow: Rows
    phase_next: Rows
    duration: Floats
    slack: Floats
    needs: Rows
    missing: Rows
    open_flows: Rows
    timer: Floats
    successor: Rows
    """Phases that wait for this one, counted from their job's first."""
    # flows
    flow_phase: Rows
    flow_entry: Rows
    near: Rows
    """The first entry whose link could ever be full, and so may hold the flow to less than its limit."""
    far: Rows
    """One past the last such entry. What lies outside of the two need not be looked at."""
    component: Rows
    """What its rate may depend on (`simulator.layout`); a link there stands for it."""
    width: Floats
    volume: Floats
    limit: Floats
    """The most a flow of the row can get: the smallest capacity on its path over ``width``."""
    rank: Ranks
    """Its level, where that is the same on all its links."""
    active: Marks
    early: Marks
    """1 while the flow may wait without harm (slack): it then runs at level 0."""
    asleep: Marks
    """1 while the flow stands still because its level changed; ``due`` is when it goes on."""
    left: Floats
    rate: Floats
    fresh: Floats
    """The rate just computed, before it is put in force."""
    held: Rows
    """The link that holds the flow to its rate, NONE where that is its limit."""
    since: Floats
    due: Floats
    # entries
    entry_link: Rows
    entry_flow: Rows
    level: Rows
    """The level in force."""
    given: Rows
    """The level that the ranking gave, in force unless the flow is ``early``."""
    members: Rows
    """Link by link, the entries of active flows, in no order."""
    rider: Rows
    """Whose entries these are."""
    seat: Rows
    """Where in ``members`` the entry is."""
    grant: Floats
    # scratch and globals
    calendar: Floats
    """What is due when (`simulator.agenda`): flows, phases, jobs."""
    soonest: Floats
    """The earliest time of each block of ``calendar``."""
    noise: Floats
    queue: Rows
    """Component by component, the flows whose rates are to be computed again."""
    queue_first: Rows
    """Where those of the component begin, by the link that stands for it."""
    queue_last: Rows
    """One past the last of them."""
    waiting: Rows
    """The components that have any."""
    batch: Rows
    marked: Marks
    touched: Rows
    """The links of the affected flows that could be full."""
    spot: Rows
    """A link's place in ``touched``, NONE where it has none."""
    key: Floats
    """What the links of ``touched`` have for each flow that grows on them; inf where none does."""
    most: Floats
    """The most that a flow on the link has that keeps its rate, or had a while ago."""
    holds: Marks
    """0 where the link holds back no flow that keeps its rate."""
    residual: Floats
    weight: Floats
    """Flows that grow on the link."""
    wanted: Floats
    counts: Ints
    """By the places below."""
    address: Ints
    """Where the above lie in memory, for `simulator.pointer`."""


TYPES: Mapping[str, type[np.generic]] = {
    name: get_args(get_args(hint)[1])[0] for name, hint in get_type_hints(State).items()
}
"""What the elements of each field are."""


WAITING, EVENTS, ENDED, PER_LINK, LINKS, PHASES, FLOWS = range(7)
BITS, BLOCKS, TOUCHED, BATCH, OPEN, COUNTS = range(7, 13)
"""Places in ``State.counts``: components in ``waiting``, events so far, jobs that ended and are here,
1 where levels differ along a path; the numbers of all links, phases and flows; the agenda's blocks, of
1 << BITS items each; how many are in ``touched`` and ``batch``, and how many flows grow; and how many places
there are.
"""

NOISE = 65_521
"""Uniform draws that all jobs share, each from a place of its own, so that all policies see the same ones."""
