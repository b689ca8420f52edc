"""What a run gives, and its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from simulator.recovery import History, Recovery, recovery


@dataclass(frozen=True, slots=True)
class JobResult:
    """What became of a job between its ``start`` and its ``end`` (or the horizon); ``rate`` is its R then."""

    number: int
    id: str
    rate: float
    iterations: int
    start: float
    end: float
    gpus: int
    compute_s: float


@dataclass(frozen=True)
class Result:
    """A run's jobs, in the scenario's order, without those that have no R (``unmeasured`` of them).

    R counts whole iterations: a job that never started, or that the horizon left less time than one ideal
    iteration takes, has none.
    """

    policy: str
    jobs: Sequence[JobResult]
    unmeasured: int
    events: int
    wall_s: float
    history: History = ()
    """R over time: of the jobs that run then and have one."""
    load: Sequence[float] = ()
    """Of each link, the share of the run's time that completed iterations kept it busy."""
    newcomer: str | None = None
    """The id of the job whose coming is watched."""

    @property
    def min_rate(self) -> float:
        """The lowest R (0 without jobs)."""
        return min((job.rate for job in self.jobs), default=0.0)

    @property
    def average_rate(self) -> float:
        """The mean R (0 without jobs)."""
        return sum(job.rate for job in self.jobs) / len(self.jobs) if self.jobs else 0.0

    @property
    def jain(self) -> float:
        """Jain's fairness index of R: 1 when all are equal, 1/n when one has everything (0 without any)."""
        squares = sum(job.rate**2 for job in self.jobs)
        return sum(job.rate for job in self.jobs) ** 2 / (len(self.jobs) * squares) if squares else 0.0

    @property
    def gpu_utilization(self) -> float:
        """The share of the jobs' GPU time that was computing, by completed iterations."""
        held = sum(job.gpus * (job.end - job.start) for job in self.jobs)
        busy = sum(job.gpus * job.iterations * job.compute_s for job in self.jobs)
        return busy / held if held else 0.0

    @cached_property
    def recovery(self) -> Recovery | None:
        """How jobs settled after ``newcomer`` came, until the next came or went (None: it has no R)."""
        arrival = next((job.start for job in self.jobs if job.id == self.newcomer), None)
        if arrival is None:
            return None
        present = [job for job in self.jobs if job.start <= arrival < job.end]
        later = [job.start for job in self.jobs if job.start > arrival]
        end = min([*later, *(job.end for job in present)])
        return recovery(self.history, {job.number: job.start for job in present}, arrival, end)

    def as_json(self) -> dict[str, object]:
        """Return the run as ``leveller sim --json`` prints it."""
        return {
            "policy": self.policy,
            "jobs": [{"id": job.id, "R": job.rate, "iterations": job.iterations} for job in self.jobs],
            "min_R": self.min_rate,
            "avg_R": self.average_rate,
            "jain": self.jain,
            "gpu_utilization": self.gpu_utilization,
            **({"settled_R": found.settled, "recovery_s": found.seconds} if (found := self.recovery) else {}),
            "events": self.events,
            "wall_s": self.wall_s,
        }
