"""Each job's iterations and bursts as they happen, and what an iteration is made of."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence

from hostagent.flows.tracker import Sent
from hostagent.timing import Iteration, Timing, measure
from hostagent.timing_bursts import BurstFinder

KEEP = 64
"""Iterations that a measurement is of, at most."""

MEASURE_NS = 1_000_000_000
"""Shortest time between two measurements."""

NOTHING = Sent(0, 0)


class JobTiming:
    """The last iterations and bursts of one job."""

    def __init__(self) -> None:
        self._iterations: deque[Iteration] = deque(maxlen=KEEP)
        self._finder = BurstFinder()
        self.stale = False
        """Iterations were completed since the last measurement."""

    def completed(self, end_ns: int, durations_ns: Sequence[int]) -> None:
        """Take in iterations that followed one another, the last of which ended at ``end_ns``."""
        ends = [end_ns]
        for duration_ns in reversed(durations_ns[1:]):
            ends.append(ends[-1] - duration_ns)
        self._iterations.extend(map(Iteration, reversed(ends), durations_ns))
        self.stale = True

    def looked(self, sent: Sent, now_ns: int) -> None:
        """Take in what the job's collectives have ``sent`` from the last look to that at ``now_ns``."""
        self._finder.see(now_ns, sent.bytes_sent, sent.quiet_ms * 1_000_000)

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
        if durations_ns and job in self._jobs:
            self._jobs[job].completed(end_ns, durations_ns)

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

    def looked(self, sent: Mapping[str, Sent], now_ns: int) -> None:
        """Take in a look at the flows at ``now_ns``: what those of each job have ``sent`` since the last."""
        for name, job in self._jobs.items():
            job.looked(sent.get(name, NOTHING), now_ns)

    def keep(self, jobs: Collection[str]) -> None:
        """Keep the timing of ``jobs``, and of no others."""
        self._jobs = {job: self._jobs.get(job) or JobTiming() for job in jobs}
