"""Between the switches' flow counters and the jobs: which are to be read, and what a reading says of whom.

Pure. A flow is counted where it enters the fabric: by the first switch on its path that can be asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from controlplane.config import Config
from controlplane.groups import Placement
from controlplane.model import FiveTuple, Path
from controlplane.plausibility import Plausibility, Sample, Verdict
from controlplane.profiling import Profiler, State
from controlplane.reports import HostAddress
from controlplane.tally import Tally

PROMPT_NS = 250_000_000
"""A reading tells of an iteration that the job told of so long before, and no longer."""

Readings = Mapping[str, Mapping[FiveTuple, int]]
"""Switch -> flow -> bytes."""


class Counting:
    """The check of jobs' progress by counters, from the placement and the readings to the verdicts."""

    def __init__(self, config: Config) -> None:
        self._window = config.profiling.window
        self._able = {switch.name for switch in config.switches if switch.protocol == "p4runtime"}
        self._plausibility = Plausibility(config.counters.tolerance, config.counters.min_iterations)
        self._tally = Tally()
        self._sources: dict[str, frozenset[HostAddress]] = {}
        self._again: set[str] = set()
        self._flows: dict[str, dict[str, list[FiveTuple]]] = {}
        self._told_ns: dict[str, int] = {}
        self._profiled: set[str] = set()
        self._placed: tuple[Placement, Collection[str]] | None = None

    def place(self, placement: Placement, jobs: Collection[str]) -> None:
        """Count the flows of ``placement`` from now on; ``jobs`` are all there are."""
        self._placed = placement, jobs  # sorted out when counters are read next: a ranking need not wait

    def told(self, job: str, now_ns: int) -> None:
        """``job``, which is profiled, told of an iteration: its counters should be read at once."""
        self._told_ns[job] = now_ns

    @property
    def urgent(self) -> frozenset[str]:
        """The jobs whose counters should be read at once."""
        return frozenset(self._told_ns)

    def flows(self, jobs: Collection[str] | None = None) -> dict[str, list[FiveTuple]]:
        """Return switch -> flows to be counted there, those of ``jobs`` or of all."""
        self._sort_out()
        found: dict[str, list[FiveTuple]] = {}
        for job in self._flows if jobs is None else jobs:
            for switch, flows in self._flows.get(job, {}).items():
                found.setdefault(switch, []).extend(flows)
        return found

    def observe(
        self,
        readings: Readings,
        done: Mapping[str, int],
        profiler: Profiler,
        now_ns: int,
        jobs: Collection[str] | None = None,
    ) -> None:
        """Take in what switches counted until ``now_ns`` of ``flows(jobs)``.

        ``done``: job -> iterations that it has told of by then. A job is looked at only where all the
        switches that count for it were read.
        """
        self._sort_out()
        for switch, counts in readings.items():
            self._tally.observe(switch, counts)
        for job in tuple(self._flows if jobs is None else jobs):
            switches = self._flows.get(job, {}).keys()
            if switches and job in done and switches <= readings.keys():
                self._look_at(job, Sample(now_ns, done[job], self._tally.of(job)), profiler)
            else:
                self._told_ns.pop(job, None)  # what is read of it later tells nothing of that iteration

    def _look_at(self, job: str, sample: Sample, profiler: Profiler) -> None:
        told_ns = self._told_ns.pop(job, None)
        state = profiler.state(job)
        prompt = told_ns is not None and sample.now_ns - told_ns <= PROMPT_NS
        if prompt and (state is State.PROFILING or job in self._profiled):
            self._plausibility.alone(job, sample)
            self._profiled.add(job)
        if state is State.PROFILING:
            return
        if job in self._profiled:
            self._profiled.discard(job)
            t_ideal_ns = profiler.t_ideal_ns(job)
            if state is State.WAITING or t_ideal_ns is None:
                self._plausibility.put_off(job)
            else:
                stable = bool(profiler.confidence(job))
                self._plausibility.profiled(job, t_ideal_ns, stable=stable, window=self._window)
        elif self.verdict(job).t_ideal_ns != profiler.t_ideal_ns(job):
            self._plausibility.void(job)  # it was profiled again, and nothing was read meanwhile
        flagged = self.verdict(job).flagged
        if not self._plausibility.check(job, sample) or (self.verdict(job).flagged and not flagged):
            self._again.add(job)

    def verdict(self, job: str) -> Verdict:
        """Return what is known of ``job``'s word."""
        return self._plausibility.verdict(job)

    def sent(self, job: str) -> Mapping[HostAddress, int]:
        """Return the bytes that were counted of the flows that ``job`` has, by source."""
        sent: Counter[HostAddress] = Counter()
        for flow, count in self._tally.of(job).items():
            sent[flow.source] += count
        return sent

    def void(self, job: str) -> None:
        """``job`` sends other bytes in an iteration from now on."""
        self._plausibility.void(job)

    def take_again(self) -> frozenset[str]:
        """Return the jobs that are flagged, or not checked, since the last call: to be profiled again."""
        again, self._again = frozenset(self._again), set()
        return again

    def restart(self, job: str) -> None:
        """``job`` began anew, or is gone."""
        self._plausibility.restart(job)
        self._told_ns.pop(job, None)
        self._profiled.discard(job)
        self._again.discard(job)

    def _sort_out(self) -> None:
        """Find which switch counts which flow, of which job, where the placement is a new one."""
        if self._placed is None:
            return
        (placement, jobs), self._placed = self._placed, None
        groups = {group.id: group for group in placement.groups}
        self._flows = {}
        owners: dict[tuple[str, FiveTuple], str] = {}
        sources: dict[str, set[HostAddress]] = {}
        for flow, (group_id, _) in placement.flows.items():
            group = groups[group_id]
            switch = self._counts(group.path)
            if switch is not None:
                owners[switch, flow] = group.job
                self._flows.setdefault(group.job, {}).setdefault(switch, []).append(flow)
                sources.setdefault(group.job, set()).add(flow.source)
        self._tally.place(owners)
        before, self._sources = self._sources, {job: frozenset(of) for job, of in sources.items()}
        for job in before.keys() & set(jobs):
            if self._sources.get(job) != before[job] and self.verdict(job).checked:
                self._plausibility.void(job)  # with more hosts, or fewer, each sends other bytes
                self._again.add(job)
        self._plausibility.keep(jobs)
        self._told_ns = {job: told_ns for job, told_ns in self._told_ns.items() if job in jobs}
        self._profiled.intersection_update(jobs)

    def _counts(self, path: Path) -> str | None:
        return next((link.switch for link in path if link.switch in self._able), None)
