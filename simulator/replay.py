"""From a trace's jobs to a scenario's: who gets which traffic, when it starts and how long it runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from leveller.errors import UserError
from simulator.bounds import MAX_ITERATIONS, MAX_STEPS
from simulator.fabric import Fabric
from simulator.scenario import MAX_JOBS, JobSection
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


def sections(workload: TraceWorkload, fabric: Fabric, seed: int, horizon: float) -> list[JobSection]:
    """Return the workload's jobs that start before ``horizon``, by start.

    Raises UserError where they are none, too many or too long.
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
    if not found:
        mend = "move workload.window_s, or lengthen horizon_s"
        raise UserError("none of the trace's jobs runs within workload.window_s and horizon_s", mend)
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
    alone = section.alone_s(fabric)
    if job.start + job.duration >= horizon:
        if (horizon - job.start) / alone > MAX_STEPS:
            what = f"job {job.id} would do {(horizon - job.start) / alone:.2g} iterations of {profile}"
            raise UserError(what, f"shorten horizon_s: keep to {MAX_STEPS}")
        return section
    iterations = max(1, round(job.duration / alone))
    if iterations > MAX_ITERATIONS:
        mend = "raise workload.speedup"
        raise UserError(f"job {job.id} would do {iterations} iterations of {profile}", mend)
    return section.model_copy(update={"iterations": iterations})
