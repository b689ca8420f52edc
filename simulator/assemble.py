"""From plans to `State`, and from one state to the next when jobs come and go."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.plan import Plan
from simulator.state import AFFECTED, NONE, Floats, Ints, State

NOISE = 65_521
"""Uniform draws that all jobs share, each from a place of its own, so that all policies see the same ones."""

_JOB = (
    *("done", "target", "open_phases", "next_due", "ended", "jitter", "draw"),
    *("cycle", "offset", "shift_at", "paused"),
)
_PHASE = ("duration", "slack", "needs", "missing", "open_flows", "timer")
_FLOW = (
    *("width", "volume", "limit", "left", "rate", "since", "due"),
    *("active", "early", "asleep", "held", "marked"),
)
_INDICES = ("successor", "entry_link", "level", "after", "before")
_OFFSETS = ("job_phase", "phase_flow", "phase_next", "flow_entry")
_COUNTS = (
    *("done", "target", "open_phases", "draw", "needs", "missing", "open_flows"),
    *("active", "early", "asleep", "held", "marked"),
)
_WHOLE = frozenset((*_COUNTS, *_INDICES, *_OFFSETS))


def empty(capacity: Floats, seed: int) -> State:
    """Return the state of a fabric whose links have ``capacity`` bytes/s, without jobs."""
    noise = np.random.default_rng([seed, 1]).random(NOISE)
    links = len(capacity)
    fields: dict[str, np.ndarray] = {name: np.zeros(0, _type(name)) for name in (*_JOB, *_PHASE, *_FLOW)}
    fields |= {name: np.zeros(0, np.int64) for name in _INDICES}
    fields |= {name: np.zeros(1, np.int64) for name in _OFFSETS}
    fields |= {
        "capacity": np.asarray(capacity, np.float64),
        "demand": np.zeros(links),
        "head": np.full(links, NONE, np.int64),
        "noise": noise,
        "counts": np.zeros(4, np.int64),
    }
    return _with_scratch(fields)


def change(state: State, keep: np.ndarray, plans: Sequence[Plan], draws: Sequence[int]) -> State:
    """Return ``state`` with only the jobs where ``keep`` is true, and after them those of ``plans``.

    Jobs that are dropped have ended: none of their flows is active. ``draws`` says where in the noise each
    new job's draws start. The new jobs have not begun.
    """
    phase_kept = np.repeat(keep, np.diff(state.job_phase))
    flow_kept = np.repeat(phase_kept, np.diff(state.phase_flow))
    entry_kept = np.repeat(flow_kept, np.diff(state.flow_entry))
    next_kept = np.repeat(phase_kept, np.diff(state.phase_next))
    place = np.append(np.cumsum(entry_kept) - 1, NONE)  # so that place[NONE] is NONE
    new = _rows(plans, draws, state.capacity)
    entries = len(new["entry_link"])

    fields: dict[str, np.ndarray] = {}
    for names, kept in ((_JOB, keep), (_PHASE, phase_kept), (_FLOW, flow_kept)):
        for name in names:
            fields[name] = np.concatenate([getattr(state, name)[kept], new[name]])
    for name, kept in (
        ("job_phase", keep),
        ("phase_flow", phase_kept),
        ("phase_next", phase_kept),
        ("flow_entry", flow_kept),
    ):
        sizes = np.concatenate([[0], np.diff(getattr(state, name))[kept], new[name]])
        fields[name] = np.cumsum(sizes).astype(np.int64)
    fields["successor"] = np.concatenate([state.successor[next_kept], new["successor"]])
    fields["entry_link"] = np.concatenate([state.entry_link[entry_kept], new["entry_link"]])
    fields["level"] = np.concatenate([state.level[entry_kept], np.zeros(entries, np.int64)])
    for name in ("after", "before"):
        old = place[getattr(state, name)[entry_kept]]
        fields[name] = np.concatenate([old, np.full(entries, NONE, np.int64)])
    fields |= {
        "capacity": state.capacity,
        "demand": state.demand,
        "head": place[state.head],
        "noise": state.noise,
        "counts": state.counts.copy(),
    }
    return _with_scratch(fields)


def _type(name: str) -> type[np.int64] | type[np.float64]:
    return np.int64 if name in _WHOLE else np.float64


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
        "next_due": never,
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
    }
    return {name: np.asarray(values, _type(name)) for name, values in rows.items()}


def _with_scratch(fields: dict[str, np.ndarray]) -> State:
    jobs, phases = len(fields["done"]), len(fields["duration"])
    flows, entries, links = len(fields["width"]), len(fields["entry_link"]), len(fields["capacity"])
    flow_phase = _owners(fields["phase_flow"])
    phase_job = _owners(fields["job_phase"])
    affected = np.flatnonzero(fields["marked"])
    queue = np.zeros(flows, np.int64)
    queue[: len(affected)] = affected
    fields["counts"][AFFECTED] = len(affected)
    scratch: dict[str, np.ndarray] = {
        "flow_job": phase_job[flow_phase] if phases else flow_phase,
        "entry_flow": _owners(fields["flow_entry"]),
        "fresh": np.zeros(flows),
        "grant": np.zeros(entries),
        "wanted": np.zeros(entries),
        "queue": queue,
        "queue_jobs": np.zeros(jobs, np.int64),
        "batch": np.zeros(max(flows, entries), np.int64),
        "job_marked": np.zeros(jobs, np.int64),
        "touched": np.zeros(links, np.int64),
        "residual": np.zeros(links),
        "weight": np.full(links, float(NONE)),
        "full": np.zeros(links, np.int64),
    }
    return State(**fields, **scratch)


def _owners(offsets: np.ndarray) -> Ints:
    """Return, for each row, the number of the range of ``offsets`` that it lies in."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))
