"""An exact fluid model of jobs that share links: strict priority across levels, max-min within a level.

Between two events (a phase ends, or the ranking is redone) every rate is constant, so time advances from
event to event in rational arithmetic and nothing is rounded. Levels come from the controller's own policies.

It is the model that `simulator.run` computes in floating point for thousands of GPUs, written a second time
and as plainly as can be, so that tests can hold the one against the other. And it knows when every iteration
ended, exactly, where the other only counts them: that is what `Result.long_run` takes to find the cycle in
which jobs repeat themselves. `topo.theory` prints that long-run R, 3/4 say; counts give 0.7495 for it after
6,000 seconds, at ten times the cost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from controlplane.model import Group, Job, Levels, Link, Path
from controlplane.policies import Policy, Scope

Number = int | Fraction


@dataclass(frozen=True, slots=True)
class Compute:
    """A phase that takes ``duration`` whatever the others do."""

    duration: Number


@dataclass(frozen=True, slots=True)
class Communicate:
    """A phase that sends ``volume`` along each of ``paths`` and ends when all of it has arrived.

    A link of capacity 1 carries a volume of 1 in a unit of time.
    """

    volume: Number
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class FluidJob:
    """A job: the phases of an iteration, in order, its ideal iteration time and Crux's intensity."""

    id: str
    phases: tuple[Compute | Communicate, ...]
    ideal: Number
    intensity: float = 0.0
    start: Number = 0


@dataclass(frozen=True, slots=True)
class Result:
    """What happened until ``horizon``: when each job's iterations ended, exactly."""

    jobs: Mapping[str, FluidJob]
    ends: Mapping[str, Sequence[Fraction]]
    horizon: Fraction

    def rate(self, job: str, at: Number | None = None) -> Fraction:
        """Return R of ``job`` at time ``at`` (default: the horizon), which lies after the job's start."""
        at = self.horizon if at is None else Fraction(at)
        done = sum(end <= at for end in self.ends[job])
        return done * self.jobs[job].ideal / Fraction(at - self.jobs[job].start)

    def long_run(self, job: str) -> Fraction:
        """Return R in the horizon's second half: exact where iterations repeat in a cycle, else the mean.

        A job with fewer than two iteration ends there is starved: 0.
        """
        ends = [end for end in self.ends[job] if 2 * end >= self.horizon]
        if len(ends) < 2:
            return Fraction(0)
        times = [later - earlier for earlier, later in pairwise(ends)]
        cycle = next(n for n in range(1, len(times) + 1) if times[n:] == times[:-n])
        return cycle * self.jobs[job].ideal / sum(times[:cycle], Fraction(0))


@dataclass(slots=True)
class _Flow:
    group: Group
    left: Fraction
    rate: Fraction = Fraction(0)


@dataclass(slots=True)
class _State:
    job: FluidJob
    phase: int = -1
    until: Fraction | None = None
    flows: list[_Flow] = field(default_factory=list)
    ends: list[Fraction] = field(default_factory=list)


def simulate(
    jobs: Sequence[FluidJob],
    policy: Policy,
    horizon: Number,
    *,
    tau: Number = 0,
    count: int = 8,
    scope: Scope = Scope.FABRIC,
    capacity: Mapping[Link, Number] | None = None,
) -> Result:
    """Run ``jobs`` until ``horizon``, ranked into ``count`` levels every ``tau`` (0: at every event).

    ``capacity`` is 1 for links that it does not name. Raises ValueError for a job without a phase that
    takes time, and for levels that make flows wait for each other in a circle.
    """
    for job in jobs:
        if not any(phase.duration if isinstance(phase, Compute) else phase.volume for phase in job.phases):
            raise ValueError(f"job {job.id} has no phase that takes time: give it one")
    groups = _groups(jobs)
    states = [_State(job, until=Fraction(job.start)) for job in jobs]
    now, ranked_at = Fraction(0), None
    levels: Levels = {}
    while True:
        for state in states:
            _advance(state, now, groups)
        if ranked_at is None or not tau or now >= ranked_at + tau:
            levels = policy(_progress(states, now), list(groups.values()), count, scope)
            ranked_at = now
        flows = [flow for state in states for flow in state.flows if flow.left]
        allocate(flows, levels, capacity or {})
        times = [state.until for state in states if state.until is not None]
        times += [now + flow.left / flow.rate for flow in flows if flow.rate]
        if tau:
            times.append(ranked_at + tau)
        following = min(times)
        if following > horizon:
            return Result(
                {job.id: job for job in jobs},
                {state.job.id: state.ends for state in states},
                Fraction(horizon),
            )
        for flow in flows:
            flow.left -= flow.rate * (following - now)
        now = following


def _groups(jobs: Iterable[FluidJob]) -> dict[tuple[str, Path], Group]:
    return {
        (job.id, path): Group(f"{job.id}/{number}", job.id, path)
        for job in jobs
        for number, path in enumerate(
            dict.fromkeys(
                path for phase in job.phases if isinstance(phase, Communicate) for path in phase.paths
            )
        )
    }


def _advance(state: _State, now: Fraction, groups: Mapping[tuple[str, Path], Group]) -> None:
    """Enter the next phase, or several, where the present one has ended by ``now``."""
    while (state.until is None or state.until <= now) and not any(flow.left for flow in state.flows):
        phases = state.job.phases
        if state.phase == len(phases) - 1:
            state.ends.append(now)
        state.phase = (state.phase + 1) % len(phases)
        match phases[state.phase]:
            case Compute(duration):
                state.until, state.flows = now + duration, []
            case Communicate(volume, paths):
                state.until = None
                state.flows = [_Flow(groups[state.job.id, path], Fraction(volume)) for path in paths]


def _progress(states: Iterable[_State], now: Fraction) -> list[Job]:
    """Return the jobs as the policy sees them. Equal rationals give equal floats, so ties stay ties."""
    jobs = []
    for state in states:
        elapsed = now - state.job.start
        rate = float(len(state.ends) * state.job.ideal / elapsed) if elapsed > 0 else 0.0
        jobs.append(Job(state.job.id, rate, len(state.ends), state.job.intensity))
    return jobs


def allocate(flows: Sequence[_Flow], levels: Levels, capacity: Mapping[Link, Number]) -> None:
    """Set every flow's rate: strict priority by level on each link, max-min among equals.

    Levels may differ from link to link: a flow's share is settled once nothing that goes before it, or
    level with it, on any of its links is waiting for somebody else. Raises ValueError where flows wait in
    a circle.
    """
    left: defaultdict[Link, Fraction] = defaultdict(lambda: Fraction(1))
    left.update({link: Fraction(value) for link, value in capacity.items()})
    waiting = list(flows)
    while waiting:
        ready = _ready(waiting, levels)
        if not ready:
            raise ValueError(
                "levels make flows wait for each other in a circle: rank every link by one order"
            )
        _max_min(ready, left)
        waiting = [flow for flow in waiting if not any(flow is done for done in ready)]


def _ready(waiting: Sequence[_Flow], levels: Levels) -> list[_Flow]:
    """Return the flows that are on the top level of all their links together with all that tie there."""
    at: defaultdict[Link, list[tuple[int, _Flow]]] = defaultdict(list)
    for flow in waiting:
        for link in flow.group.path:
            at[link].append((levels[flow.group.id][link], flow))
    ready = list(waiting)
    while True:
        held = set()
        for entries in at.values():
            top = max(level for level, _ in entries)
            first = [flow for level, flow in entries if level == top]
            held |= {id(flow) for level, flow in entries if level < top}
            if not all(flow in ready for flow in first):
                held |= {id(flow) for flow in first}
        left = [flow for flow in ready if id(flow) not in held]
        if len(left) == len(ready):
            return ready
        ready = left


def _max_min(flows: Sequence[_Flow], left: defaultdict[Link, Fraction]) -> None:
    """Fill ``flows`` together until each has a full link; ``left`` loses what they take."""
    growing = list(flows)
    for flow in flows:
        flow.rate = Fraction(0)
    while growing:
        users: defaultdict[Link, int] = defaultdict(int)
        for flow in growing:
            for link in flow.group.path:
                users[link] += 1
        step = min(left[link] / number for link, number in users.items())
        for flow in growing:
            flow.rate += step
            for link in flow.group.path:
                left[link] -= step
        growing = [flow for flow in growing if all(left[link] for link in flow.group.path)]
