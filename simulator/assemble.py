"""From plans to `State`, and from one state to the next when jobs come and go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simulator.layout import lay
from simulator.least import LANES
from simulator.plan import Plan
from simulator.state import (
    BITS,
    BLOCKS,
    COUNTS,
    ENDED,
    FLOWS,
    LINKS,
    NOISE,
    NONE,
    PHASES,
    TYPES,
    Floats,
    State,
)

_JOB = (
    *("done", "target", "open_phases", "ended", "jitter", "draw"),
    *("cycle", "offset", "shift_at", "paused"),
)
_PHASE = ("duration", "slack", "needs", "missing", "open_flows", "timer")
_FLOW = (
    *("width", "volume", "limit", "left", "rate", "since", "due"),
    *("active", "early", "asleep", "held", "marked"),
)
_ENTRY = ("entry_link", "level", "given")
_LINK_SCRATCH = (
    *("first", "last", "touched", "spot", "key"),
    *("most", "holds", "residual", "weight"),
    *("queue_first", "queue_last", "waiting"),
)
_FLOW_SCRATCH = ("near", "far", "component", "rank", "fresh", "queue")
_ENTRY_SCRATCH = ("members", "rider", "seat", "grant", "wanted")
_OFFSETS = ("job_phase", "phase_flow", "phase_next", "flow_entry")


def empty(capacity: Floats, seed: int) -> State:
    """Return the state of a fabric whose links have ``capacity`` bytes/s, without jobs."""
    noise = np.random.default_rng([seed, 1]).random(NOISE)
    rows = (*_JOB, *_PHASE, *_FLOW, *_ENTRY, "successor")
    return _whole(
        {
            **{name: np.zeros(0) for name in rows},
            **{name: np.zeros(1) for name in _OFFSETS},
            "capacity": capacity,
            "noise": noise,
            "counts": np.zeros(COUNTS),
        }
    )


def change(state: State, keep: np.ndarray, plans: Sequence[Plan], draws: Sequence[int]) -> State:
    """Return ``state`` with only the jobs where ``keep`` is true, and after them those of ``plans``.

    Jobs that are dropped have ended: none of their flows is active. ``draws`` says where in the noise each
    new job's draws start. The new jobs have not begun.
    """
    phase_kept = np.repeat(keep, np.diff(state.job_phase))
    flow_kept = np.repeat(phase_kept, np.diff(state.phase_flow))
    entry_kept = np.repeat(flow_kept, np.diff(state.flow_entry))
    next_kept = np.repeat(phase_kept, np.diff(state.phase_next))
    new = _rows(plans, draws, state.capacity)

    fields: dict[str, np.ndarray] = {}
    for names, kept in (
        (_JOB, keep),
        (_PHASE, phase_kept),
        (_FLOW, flow_kept),
        (_ENTRY, entry_kept),
        (("successor",), next_kept),
    ):
        for name in names:
            fields[name] = np.concatenate([getattr(state, name)[kept], new[name]])
    for name, kept in (
        ("job_phase", keep),
        ("phase_flow", phase_kept),
        ("phase_next", phase_kept),
        ("flow_entry", flow_kept),
    ):
        fields[name] = np.cumsum(np.concatenate([[0], np.diff(getattr(state, name))[kept], new[name]]))
    return _whole({**fields, "capacity": state.capacity, "noise": state.noise, "counts": state.counts.copy()})


def _rows(plans: Sequence[Plan], draws: Sequence[int], capacity: Floats) -> dict[str, np.ndarray]:
    """Return the rows of jobs that have not begun; the offsets' fields hold sizes."""
    phases = [phase for plan in plans for phase in plan.phases]
    flows = [flows for phase in phases for flows in phase.flows]
    following = [
        [place for place, later in enumerate(plan.phases) if own in later.after]
        for plan in plans
        for own in range(len(plan.phases))
    ]
    never = np.full(len(plans), np.inf)
    path_capacity = [min(float(capacity[link]) for link in row.path) for row in flows]
    width = np.array([row.width for row in flows], np.float64)
    zeros = np.zeros(len(flows))
    rows: dict[str, Sequence[float] | np.ndarray] = {
        "done": np.zeros(len(plans)),
        "target": [plan.target for plan in plans],
        "open_phases": np.zeros(len(plans)),
        "ended": never,
        "jitter": [plan.jitter for plan in plans],
        "draw": draws,
        "cycle": np.zeros(len(plans)),
        "offset": np.zeros(len(plans)),
        "shift_at": -never,
        "paused": never,
        "duration": [phase.duration for phase in phases],
        "slack": [phase.slack for phase in phases],
        "needs": [len(phase.after) for phase in phases],
        "missing": np.zeros(len(phases)),
        "open_flows": np.zeros(len(phases)),
        "timer": np.full(len(phases), np.inf),
        "width": width,
        "volume": [row.volume for row in flows],
        "limit": np.array(path_capacity) / width,
        "active": zeros,
        "held": np.full(len(flows), NONE),
        "marked": zeros,
        "early": zeros,
        "asleep": zeros,
        "left": zeros,
        "rate": zeros,
        "since": zeros,
        "due": np.full(len(flows), np.inf),
        "job_phase": [len(plan.phases) for plan in plans],
        "phase_flow": [len(phase.flows) for phase in phases],
        "phase_next": [len(places) for places in following],
        "flow_entry": [len(row.path) for row in flows],
        "successor": [place for places in following for place in places],
        "entry_link": [link for row in flows for link in row.path],
        "level": np.zeros(sum(len(row.path) for row in flows)),
        "given": np.zeros(sum(len(row.path) for row in flows)),
    }
    return {name: np.asarray(values, TYPES[name]) for name, values in rows.items()}


def _whole(given: Mapping[str, np.ndarray]) -> State:
    """Return the state of ``given`` with what follows from that, and scratch."""
    # Compiled code trusts that the elements are of these types, one after the other.
    fields = {name: np.ascontiguousarray(values, TYPES[name]) for name, values in given.items()}
    jobs, phases = len(fields["done"]), len(fields["duration"])
    flows, entries, links = len(fields["width"]), len(fields["entry_link"]), len(fields["capacity"])
    items = flows + phases + jobs
    bits = max(items.bit_length() // 2, LANES.bit_length() - 1)
    blocks = -(-max(items, 1) >> bits)
    blocks += -blocks % LANES
    fields |= {
        "calendar": np.full(blocks << bits, np.inf),
        "soonest": np.full(blocks, np.inf),
        "batch": np.zeros(max(flows, entries), TYPES["batch"]),
    }
    for name, offsets in (
        ("phase_job", "job_phase"),
        ("flow_phase", "phase_flow"),
        ("entry_flow", "flow_entry"),
    ):
        sizes = np.diff(fields[offsets])
        fields[name] = np.repeat(np.arange(len(sizes), dtype=TYPES[name]), sizes)
    for names, size in ((_LINK_SCRATCH, links), (_FLOW_SCRATCH, flows), (_ENTRY_SCRATCH, entries)):
        for name in names:
            fields[name] = np.zeros(size, TYPES[name])
    fields["spot"][:] = NONE
    fields["key"] = np.zeros(links + LANES)
    numbers = (ENDED, LINKS, PHASES, FLOWS, BITS, BLOCKS)
    fields["counts"][list(numbers)] = 0, links, phases, flows, bits, blocks
    at = 0
    for name in ("due", "timer", "paused"):
        leaves = fields["calendar"][at : at + len(fields[name])]
        leaves[:] = fields[name]
        fields[name] = leaves
        at += len(leaves)
    address = [fields[name].ctypes.data for name in State._fields if name != "address"]
    state = State(**fields, address=np.array([*address, 0], np.int64))
    lay(state)
    return state
