"""One run: jobs arrive, are placed, ranked by the controller's own policy, and leave."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import numpy as np

from controlplane.model import Levels
from simulator import assemble, engine, shifts
from simulator.fabric import Fabric
from simulator.jobs import Arrival, arrivals, plan
from simulator.policies import choose
from simulator.ranking import Ranking, Running, enter, sent
from simulator.results import JobResult, Result
from simulator.routing import Router
from simulator.scenario import Scenario
from simulator.state import EVENTS, NOISE, Ints, State
from simulator.traffic import ecmp, place

SAMPLES = 200
"""Points of R over time, evenly over the horizon, where the scenario has no ``sample_s``."""


def simulate(
    scenario: Scenario,
    fabric: Fabric,
    policy: str,
    seed: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> Result:
    """Run ``scenario`` on ``fabric`` under ``policy``; ``progress`` is told the simulated time now and then.

    ``seed`` (default: the scenario's) draws paths, random placement, jitter and a generated workload.
    Raises UserError for a policy that does not exist.
    """
    started = time.perf_counter()
    run = Run(scenario, fabric, policy, scenario.seed if seed is None else seed)
    run.go(progress or (lambda _: None))
    return Result(
        policy,
        sorted(run.results, key=lambda job: job.number),
        run.unmeasured + len(run.waiting) + len(run.coming),
        int(run.state.counts[EVENTS]),
        time.perf_counter() - started,
        run.history,
        (run.busy / run.now).tolist() if run.now else [],
        scenario.newcomer,
    )


class Run:
    """A run between two instants at which the compiled loop stops."""

    def __init__(self, scenario: Scenario, fabric: Fabric, policy: str, seed: int) -> None:
        self.scenario = scenario
        self.fabric = fabric
        self.seed = seed
        self.state: State = assemble.empty(fabric.capacity, seed)
        self.coming = deque(arrivals(scenario, fabric, seed))
        self.waiting: deque[Arrival] = deque()
        self.running: list[Running] = []
        self.results: list[JobResult] = []
        self.unmeasured = 0
        self.now = 0.0
        self.busy = np.zeros(len(fabric.links))
        self.history: list[tuple[float, dict[int, float]]] = []
        self._free = {name: host.gpus for name, host in fabric.hosts.items()}
        self._policy, self._settings = choose(policy, scenario.policy)
        self._ranking = Ranking(self._policy.levels, self._settings)
        self._router = Router(fabric) if self._settings.paths == "crux" and fabric.hosts else None
        self._ranks = policy != "fair"  # which leaves everything at level 0, where it starts
        self._pending: deque[tuple[float, Levels]] = deque()

    def go(self, progress: Callable[[float], object]) -> None:
        """Run to the horizon, or until all jobs have ended."""
        tau, horizon = self._settings.tau_s, self.scenario.horizon_s
        each = self._policy.by_progress and tau == 0
        sample_every = self.scenario.sample_s or horizon / SAMPLES
        now, rank_at, sample_at = 0.0, np.inf, sample_every
        seen = -1
        while True:
            events = int(self.state.counts[EVENTS])
            if (self._change_jobs(now) and self._ranks) or (each and events > seen) or now >= rank_at:
                self._rank(now)
                rank_at = now + tau if self._policy.by_progress and not each else np.inf
            seen = events
            while self._pending and self._pending[0][0] <= now:
                self._put_in_force(self._pending.popleft()[1], now)
            engine.refresh(self.state, now)
            if now >= horizon or not (self.running or self.coming):
                break
            if now >= sample_at:
                self._sample(now)
                sample_at = now + sample_every
            until = min(horizon, rank_at, sample_at)
            if self.coming:
                until = min(until, self.coming[0].start)
            if self._pending:
                until = min(until, self._pending[0][0])
            now = self.now = float(engine.advance(self.state, until, each))
            progress(now)
        self._record(self.running, self.state.done, np.full(len(self.running), now))

    def _change_jobs(self, now: float) -> bool:
        """Let go the jobs that ended, start those that came and find room. Return whether any did."""
        keep = np.isinf(self.state.ended)
        gone = [job for job, stays in zip(self.running, keep, strict=True) if not stays]
        self._record(gone, self.state.done[~keep], self.state.ended[~keep])
        for job in gone:
            for host, count in job.taken.items():
                self._free[host] += count
        while self.coming and self.coming[0].start <= now:
            self.waiting.append(self.coming.popleft())
        fresh = self._start_waiting(now)
        if not gone and not fresh:
            return False
        self.running = [job for job, stays in zip(self.running, keep, strict=True) if stays] + fresh
        draws = [job.number * 7919 % NOISE for job in fresh]
        self.state = assemble.change(self.state, keep, [job.plan for job in fresh], draws)
        if self._router is not None:
            self.running = self._router.spread(self.running)
            links = [
                link
                for job in self.running
                for phase in job.plan.phases
                for flows in phase.flows
                for link in flows.path
            ]
            engine.reroute(self.state, np.array(links, np.int64), now)
        first = len(self.running) - len(fresh)
        engine.start_jobs(self.state, np.arange(first, len(self.running)), now)
        return True

    def _start_waiting(self, now: float) -> list[Running]:
        """Place the waiting jobs, first come first served, until one finds no room."""
        fresh = []
        while self.waiting:
            arrival = self.waiting[0]
            seed = [self.seed, 3, arrival.number]
            taken = place(self.fabric, self._free, arrival.gpus, self.scenario.placement, seed)
            if taken is None:
                break
            for host, count in taken.items():
                self._free[host] -= count
            choose = ecmp(self.fabric, [self.seed, 4, arrival.number])
            placed = plan(arrival, self.fabric, taken, choose)
            fresh.append(enter(arrival.number, placed, self.fabric, now, taken))
            self.waiting.popleft()
        return fresh

    def _rank(self, now: float) -> None:
        flows = sent(self.running, self.state, now) if self._policy.sees_flows else {}
        levels = self._ranking.levels(self.running, self.state.done.tolist(), now, flows)
        if self._policy.shifts:
            engine.set_shifts(self.state, *shifts.as_arrays(self.running, self.fabric))
        if self._settings.delay_s:
            self._pending.append((now + self._settings.delay_s, levels))
        else:
            self._put_in_force(levels, now)

    def _put_in_force(self, levels: Levels, now: float) -> None:
        array, per_link = self._ranking.as_array(self.running, levels)
        engine.set_levels(self.state, array, per_link, now, self._settings.stall_s)

    def _sample(self, now: float) -> None:
        rates = {
            job.number: job.rate(count, now)
            for job, count in zip(self.running, self.state.done.tolist(), strict=True)
            if now - job.start >= job.ideal_s
        }
        if rates:
            self.history.append((now, rates))

    def _record(self, jobs: list[Running], done: Ints, ends: np.ndarray) -> None:
        for job, count, end in zip(jobs, done.tolist(), ends.tolist(), strict=True):
            plan = job.plan
            for link, seconds in job.link_seconds.items():
                self.busy[link] += seconds * count
            if end - job.start < job.ideal_s:
                self.unmeasured += 1
                continue
            self.results.append(
                JobResult(
                    job.number,
                    plan.id,
                    job.rate(count, end),
                    count,
                    job.start,
                    end,
                    plan.gpus,
                    plan.compute_s,
                )
            )
