"""From a trace's jobs to a scenario's: who gets which traffic, when it starts and how long it runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from leveller.errors import UserError
from simulator.fabric import Fabric
from simulator.scenario import MAX_ITERATIONS, MAX_JOBS, JobSection, PhaseSection, Traffic
from simulator.traces import like
from simulator.traces.choose import usable
from simulator.traces.rows import TraceJob
from simulator.traces.sections import (
    LingjunLike,
    LingjunTrace,
    Profiled,
    Replayed,
    TraceWorkload,
)
from simulator.traffic import Collective, bytes_per_pair, full_rate_bytes_per_pair


def sections(workload: TraceWorkload, fabric: Fabric, seed: int, horizon: float) -> list[JobSection]:
    """Return the workload's jobs that start before ``horizon``, by start.

    Raises UserError where they are too many or too long.
    """
    random = np.random.default_rng([seed, 6])
    found: list[JobSection] = []
    for job in _timed(workload, fabric, seed, horizon):
        if job.start >= horizon:
            continue
        if len(found) == MAX_JOBS:
            mend = "narrow workload.window_s, or raise workload.min_gpus"
            raise UserError(f"more than {MAX_JOBS} of the trace's jobs start within the horizon", mend)
        found.append(_section(job, workload, fabric, horizon, str(random.choice(workload.profiles))))
    return found


def _timed(workload: TraceWorkload, fabric: Fabric, seed: int, horizon: float) -> Iterable[TraceJob]:
    """Return the jobs in the scenario's time."""
    if isinstance(workload, LingjunLike):
        return _arriving(workload, fabric, seed)
    jobs, _ = usable(workload, fabric)
    if isinstance(workload, Replayed):
        return _windowed(jobs, workload)
    return [_moved(job, 0.0, horizon) for job in jobs]


def _moved(job: TraceJob, start: float, duration: float) -> TraceJob:
    return TraceJob(job.id, start, duration, job.gpus, job.model, job.hosts)


def _windowed(jobs: Sequence[TraceJob], workload: Replayed) -> Iterable[TraceJob]:
    first, last = workload.window_s or (0.0, np.inf)
    origin = jobs[0].start
    for job in jobs:
        begin, end = job.start - origin, job.start + job.duration - origin
        if begin < last and end > first:
            shown = max(begin, first)
            yield _moved(job, (shown - first) / workload.speedup, (end - shown) / workload.speedup)


def _arriving(workload: LingjunLike, fabric: Fabric, seed: int) -> Iterable[TraceJob]:
    drawn = list(like.draw(workload.jobs, workload.min_gpus, seed))
    sizes = [min(job.gpus, fabric.gpus) for job, _ in drawn]
    busy = sum(size * job.duration for size, (job, _) in zip(sizes, drawn, strict=True)) / workload.speedup
    mean_gap = busy / len(drawn) / (workload.load * fabric.gpus)
    now = 0.0
    for size, (job, gap) in zip(sizes, drawn, strict=True):
        yield TraceJob(job.id, now, job.duration / workload.speedup, size)
        now += gap * mean_gap


def _section(job: TraceJob, workload: Profiled, fabric: Fabric, horizon: float, profile: str) -> JobSection:
    placed = isinstance(workload, LingjunTrace) and workload.placed
    given: dict[str, object] = {"id": job.id, "profile": profile, "gpus": job.gpus, "jitter": workload.jitter}
    if placed:
        given["hosts"] = list(job.hosts)
    section = JobSection.model_validate({**given, "start_s": job.start})
    if job.start + job.duration >= horizon:
        return section
    iterations = max(1, round(job.duration / alone_s(section, fabric)))
    if iterations > MAX_ITERATIONS:
        mend = "raise workload.speedup"
        raise UserError(f"job {job.id} would do {iterations} iterations of {profile}", mend)
    return section.model_copy(update={"iterations": iterations})


def alone_s(section: JobSection, fabric: Fabric) -> float:
    """Return about what an iteration takes alone, its phases one after the other and only NICs slow."""
    host = next(iter(fabric.hosts.values()))
    hosts = len(section.hosts) if section.hosts else -(-(section.gpus or 1) // host.gpus)
    parts: list[Traffic] = list(section.phases) if section.phases else [section]
    computing = sum(part.compute_s or 0.0 for part in parts if isinstance(part, PhaseSection | JobSection))
    return computing + sum(_sending_s(part, hosts, fabric, len(host.up)) for part in parts)


def _sending_s(part: Traffic, hosts: int, fabric: Fabric, nics: int) -> float:
    if hosts < 2 or not part.communicates:
        return 0.0
    receivers = hosts - 1 if part.collective is Collective.ALL_TO_ALL else 1
    if part.bytes is not None:
        return bytes_per_pair(part.collective, hosts, part.bytes) * receivers / (fabric.rate * nics)
    sent = full_rate_bytes_per_pair(part.collective, hosts, part.comm_s or 0.0, fabric.rate)
    return sent * receivers / fabric.rate
