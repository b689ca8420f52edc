"""Each job's iterations and bursts as they happen, and what an iteration is made of."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence

from hostagent.flows.connection import FiveTuple
from hostagent.flows.kind import FlowKind
from hostagent.flows.tracker import Flow
from hostagent.timing import Iteration, Timing, measure
from hostagent.timing_bursts import BurstFinder

KEEP = 64
"""Iterations that a measurement is of, at most."""

MEASURE_NS = 1_000_000_000
"""Shortest time between two measurements."""


class JobTiming:
    """The last iterations and bursts of one job."""

    def __init__(self) -> None:
        self._iterations: deque[Iteration] = deque(maxlen=KEEP)
        self._finder = BurstFinder()
        self._sent: dict[FiveTuple, tuple[int, int]] = {}  # cookie and bytes of its collectives' flows
        self.stale = False
        """Iterations were completed since the last measurement."""

    def completed(self, end_ns: int, durations_ns: Sequence[int]) -> None:
        """Take in iterations that followed one another, the last of which ended at ``end_ns``."""
        ends = [end_ns]
        for duration_ns in reversed(durations_ns[1:]):
            ends.append(ends[-1] - duration_ns)
        self._iterations.extend(map(Iteration, reversed(ends), durations_ns))
        self.stale = True

    def looked(self, flows: Mapping[FiveTuple, Flow], now_ns: int) -> None:
        """Take in the job's flows as they are at ``now_ns``."""
        grown, quiet_ms = 0, []
        sent: dict[FiveTuple, tuple[int, int]] = {}
        for key, flow in flows.items():
            if flow.kind is not FlowKind.COLLECTIVE:
                continue
            cookie, before = self._sent.get(key, (flow.cookie, flow.bytes_sent))
            if cookie == flow.cookie and flow.bytes_sent > before:
                grown += flow.bytes_sent - before
                quiet_ms.append(flow.quiet_ms)
            sent[key] = flow.cookie, flow.bytes_sent
        self._sent = sent
        self._finder.see(now_ns, grown, min(quiet_ms, default=0) * 1_000_000)

    def measure(self) -> Timing | None:
        """Return what an iteration is made of; None as long as too few are known."""
        self.stale = False
        return measure(self._iterations, self._finder.bursts, self._finder.resolution_ns)


class Timings:
    """Every job's timing."""

    def __init__(self) -> None:
        self._jobs: dict[str, JobTiming] = {}
        self._due_ns = 0

    def completed(self, job: str, end_ns: int, durations_ns: Sequence[int]) -> None:
        """Take in iterations of ``job``, the last of which ended at ``end_ns``."""
        if durations_ns:
            self._jobs.setdefault(job, JobTiming()).completed(end_ns, durations_ns)

    def measured(self, now_ns: int) -> dict[str, Timing]:
        """Return what an iteration is made of, for the jobs that have got on; at most every MEASURE_NS."""
        if now_ns < self._due_ns:
            return {}
        self._due_ns = now_ns + MEASURE_NS
        return {
            name: timing
            for name, job in self._jobs.items()
            if job.stale and (timing := job.measure()) is not None
        }

    def looked(self, flows: Mapping[FiveTuple, Flow], now_ns: int) -> None:
        """Take in all flows as they are at ``now_ns``."""
        by_job: dict[str, dict[FiveTuple, Flow]] = {}
        for key, flow in flows.items():
            by_job.setdefault(flow.job, {})[key] = flow
        for job in by_job.keys() | self._jobs.keys():
            self._jobs.setdefault(job, JobTiming()).looked(by_job.get(job, {}), now_ns)

    def keep(self, jobs: Collection[str]) -> None:
        """Forget all jobs but ``jobs``."""
        for job in self._jobs.keys() - set(jobs):
            del self._jobs[job]
