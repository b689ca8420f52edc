"""T_ideal: the time an iteration takes alone at full bandwidth, measured under the profiling level.

A new job waits for its turn, then holds the top level alone in its contention component until its
iterations are stable, and then is ranked like any other; after a while, drawn at random around a mean so that
jobs do not fall into step, it is measured again (LEVELLER profiles at 'semi-stochastic intervals').

Choices that the paper leaves open:

- Turns in a component are first come, first served. When a change of paths brings two jobs that are being
  profiled into one component, the one that began first goes on and the other waits again in its old place.
- A job that waits is ranked normally with its fastest iteration so far for T_ideal (or the T_ideal of last
  time): too long if anything, so it is taken for better off than it is and never pushes others aside for
  want of a measurement.
- Only iterations that began under the profiling level count. They are stable when ``window`` of the last
  ``2 window - 1`` agree to within ``tolerance``, the fastest first (`leveller.robust.agreeing`); the median
  of those that do is T_ideal. So warm-up and compilation pass before it is measured, and a checkpoint or an
  evaluation in between neither counts nor begins the measurement anew. After ``max_iterations`` or ``max_s``
  the fastest one seen is taken; with none seen, the job keeps what it had until its next turn. It lasts
  ``min_s`` at least: the switches' counters are read meanwhile (`controlplane.plausibility`).
- How sure that is, is said (`Profiler.confidence`): 1 for a given T_ideal, what the spread of those that
  agree makes of it for a measured one, 0 where the fastest had to do.
- Where others contend, a job's next turn begins `REST` times its last one after that at the earliest, even
  when it begins anew under its id: else starting anew each time would keep the others from the top level.
- A job whose log is not found has its turn too while it is new (``max_s`` from when its flows are placed),
  since only then can it be expected to write one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

from controlplane.config import ProfilingSection
from controlplane.progress import Iteration
from leveller.robust import agreeing, estimate

REST = 10
"""A job leaves the profiling level to those that it contends with for so many times its last turn."""


class State(StrEnum):
    """Where a job stands."""

    WAITING = "waiting"
    """Waits for its turn to be profiled, or for its flows and its log to be found."""
    PROFILING = "profiling"
    """Holds the profiling level."""
    MEASURED = "measured"
    """T_ideal is known, or could not be measured; the next profiling is due later."""


@dataclass(slots=True)
class _Job:
    turn: int
    """Place in the queue: lower goes first."""
    state: State = State.WAITING
    t_ideal_ns: int | None = None
    confidence: float | None = None
    since_ns: int = 0
    """When the profiling began."""
    due_ns: int | None = None
    """When the next profiling is due; None = never."""
    samples: list[int] = field(default_factory=list)


class Profiler:
    """Says which jobs hold the profiling level. Pure but for its memory; told the time, given its chance."""

    def __init__(
        self, settings: ProfilingSection, random: Random, saved_ns: Mapping[str, int] | None = None
    ) -> None:
        """``saved_ns``: T_ideal of jobs measured in an earlier life of the controller."""
        self._settings = settings
        self._random = random
        self._saved_ns = dict(saved_ns or {})
        self._jobs: dict[str, _Job] = {}
        self._turns = 0
        self._rests_ns: dict[str, int] = {}
        """Until when jobs that had a turn leave the next to others, those that are gone included."""

    def step(
        self,
        now_ns: int,
        jobs: Iterable[str],
        given_ns: Mapping[str, int],
        ready: Collection[str],
        components: Sequence[frozenset[str]],
    ) -> None:
        """Let time pass: begin, end and put off profilings.

        ``jobs`` are all there are; those with a T_ideal in ``given_ns`` are never profiled; ``ready`` are
        those that could be measured now (their flows are placed and their log is read); ``components`` say
        who contends.
        """
        self._take_in(now_ns, jobs, given_ns)
        for job in self._jobs.values():
            if job.state is State.MEASURED and job.due_ns is not None and now_ns >= job.due_ns:
                self._wait(job)
        self._rests_ns = {name: until_ns for name, until_ns in self._rests_ns.items() if now_ns < until_ns}
        for component in components:
            members = sorted((self._jobs[name].turn, name) for name in component if name in self._jobs)
            self._step_component(now_ns, [name for _, name in members], ready)

    def observe(self, job: str, iterations: Iterable[Iteration], now_ns: int) -> bool:
        """Take in completed iterations of ``job``. Return whether its profiling ended: they are stable."""
        state = self._jobs.get(job)
        if state is None or state.state is not State.PROFILING:
            return False
        window = self._settings.window
        for iteration in iterations:
            if iteration.end_ns - iteration.duration_ns < state.since_ns:
                continue
            state.samples.append(iteration.duration_ns)
            if now_ns - state.since_ns < self._settings.min_s * 1e9:
                continue
            stable = agreeing(state.samples[1 - 2 * window :], window, self._settings.tolerance)
            if stable:
                measured = estimate(stable)
                self._rest(job, now_ns)
                self._done(state, round(measured.value), now_ns, measured.confidence)
                return True
            if len(state.samples) >= self._settings.max_iterations:
                self._rest(job, now_ns)
                self._done(state, min(state.samples), now_ns, 0.0)
                return True
        return False

    def again(self, job: str, now_ns: int) -> None:
        """Measure ``job`` again at its next turn: what was measured goes on to count until then."""
        state = self._jobs.get(job)
        if state is not None and state.state is State.MEASURED and state.due_ns is not None:
            state.due_ns = now_ns

    def restart(self, job: str, now_ns: int) -> None:
        """``job`` began anew: what was measured of it is void."""
        self._rest(job, now_ns)
        self._jobs.pop(job, None)
        self._saved_ns.pop(job, None)

    def profiling(self) -> frozenset[str]:
        """Return the jobs that hold the profiling level."""
        return frozenset(name for name, job in self._jobs.items() if job.state is State.PROFILING)

    def state(self, job: str) -> State:
        """Return where ``job`` stands; one that was never stepped waits."""
        state = self._jobs.get(job)
        return state.state if state else State.WAITING

    def t_ideal_ns(self, job: str) -> int | None:
        """Return T_ideal of ``job`` as given, last measured or saved; None where there is none."""
        state = self._jobs.get(job)
        return state.t_ideal_ns if state else self._saved_ns.get(job)

    def confidence(self, job: str) -> float | None:
        """Return how far to trust T_ideal of ``job``, from 0 to 1; None where that is not known."""
        state = self._jobs.get(job)
        return state.confidence if state else None

    def _take_in(self, now_ns: int, jobs: Iterable[str], given_ns: Mapping[str, int]) -> None:
        names = dict.fromkeys(jobs)
        for gone in self._jobs.keys() - names.keys():
            self._rest(gone, now_ns)
            del self._jobs[gone]
        for name in names:
            if name in self._jobs:
                continue
            self._turns += 1
            job = self._jobs[name] = _Job(self._turns)
            saved_ns = self._saved_ns.pop(name, None)
            if name in given_ns:
                job.state, job.t_ideal_ns, job.confidence = State.MEASURED, given_ns[name], 1.0
            elif saved_ns is not None:
                self._done(job, saved_ns, now_ns, None)

    def _step_component(self, now_ns: int, members: Sequence[str], ready: Collection[str]) -> None:
        """Keep one profiling in a component, whose ``members`` come in order of their turns."""
        active = [self._jobs[name] for name in members if self._jobs[name].state is State.PROFILING]
        for name in members:
            job = self._jobs[name]
            if job.state is State.PROFILING and name not in ready:
                self._rest(name, now_ns)
                self._wait(job)
                active.remove(job)
        active.sort(key=lambda job: (job.since_ns, job.turn))
        for job in active[1:]:
            job.state = State.WAITING
        if active and now_ns - active[0].since_ns >= self._settings.max_s * 1e9:
            job = active.pop(0)
            self._rest(next(name for name in members if self._jobs[name] is job), now_ns)
            measured = bool(job.samples)
            self._done(
                job, min(job.samples, default=job.t_ideal_ns), now_ns, 0.0 if measured else job.confidence
            )
        if not active:
            for name in members:
                job = self._jobs[name]
                rests = len(members) > 1 and name in self._rests_ns
                if job.state is State.WAITING and name in ready and not rests:
                    job.state, job.since_ns = State.PROFILING, now_ns
                    job.samples.clear()
                    break

    def _rest(self, name: str, now_ns: int) -> None:
        """Note for how long ``name`` leaves its next turn to others, as its present one ends."""
        job = self._jobs.get(name)
        if job is not None and job.state is State.PROFILING:
            self._rests_ns[name] = now_ns + REST * (now_ns - job.since_ns)

    def _wait(self, job: _Job) -> None:
        """Send ``job`` to the end of the queue."""
        self._turns += 1
        job.turn, job.state = self._turns, State.WAITING

    def _done(self, job: _Job, t_ideal_ns: int | None, now_ns: int, confidence: float | None) -> None:
        job.state, job.t_ideal_ns, job.confidence = State.MEASURED, t_ideal_ns, confidence
        interval_s = self._settings.interval_s * self._random.uniform(0.5, 1.5)
        job.due_ns = now_ns + round(interval_s * 1e9)
