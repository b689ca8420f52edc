"""Which of a trace's jobs a scenario can run, and what is said of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from leveller.errors import UserError
from simulator.fabric import Fabric
from simulator.traces import acme, lingjun
from simulator.traces.rows import Trace, TraceJob
from simulator.traces.sections import AcmeTrace, LingjunLike, LingjunPeak, LingjunTrace, TraceWorkload


def trace(workload: LingjunTrace | AcmeTrace | LingjunPeak) -> Trace:
    """Return the workload's trace. Raises UserError for files that are none."""
    match workload:
        case LingjunTrace():
            return lingjun.read(workload.jobs, workload.workers)
        case AcmeTrace():
            return acme.read(workload.jobs)
        case LingjunPeak():
            return lingjun.peak()


def usable(
    workload: LingjunTrace | AcmeTrace | LingjunPeak, fabric: Fabric
) -> tuple[list[TraceJob], Mapping[str, int]]:
    """Return the trace's jobs that the workload can run on ``fabric``, and the number of others by reason."""
    placed = isinstance(workload, LingjunTrace) and workload.placed
    found, left = [], Counter[str]()
    for job in trace(workload).jobs:
        if job.gpus < workload.min_gpus:
            left[f"of less than min_gpus = {workload.min_gpus} GPUs"] += 1
        elif job.gpus > fabric.gpus:
            left[f"of more GPUs than the fabric's {fabric.gpus}"] += 1
        elif placed and not (job.hosts and all(host in fabric.hosts for host in job.hosts)):
            left["on hosts that the fabric does not have"] += 1
        else:
            found.append(job)
    return found, left


def notes(workload: TraceWorkload, fabric: Fabric) -> list[str]:
    """Return what people have to know of what is left out: a line per file, and one for the jobs.

    Raises UserError where nothing is left.
    """
    if isinstance(workload, LingjunLike):
        return []
    jobs, left = usable(workload, fabric)
    lines = [str(report) for report in trace(workload).reports if report.skipped]
    if left:
        others = ", ".join(f"{count} {reason}" for reason, count in left.items())
        lines.append(f"workload: {len(jobs)} jobs; left out: {others}")
    if not jobs:
        raise UserError(
            f"workload: none of the trace's jobs is left ({'; '.join(lines)})", "mend the scenario"
        )
    return lines
