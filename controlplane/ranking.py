"""One ranking: the policy's levels, with the jobs that are being profiled above the rest.

In a contention component with a job that is being profiled, that job alone has the top level K-1 and the
policy gives the others the K-1 levels below, so that T_ideal is measured as if the job were alone. With a
single level there is nothing to measure it with, and the policy's answer stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from controlplane.model import Group, Job, Levels
from controlplane.policies import Incidence, Policy, Scope

_NAMES = 4
"""Rivals that a reason names."""


def rank(
    policy: Policy,
    jobs: Sequence[Job],
    groups: Sequence[Group],
    count: int,
    scope: Scope,
    components: Sequence[Set[str]],
    profiling: Set[str],
) -> Levels:
    """Return the levels of ``groups``; ``components`` are those of `job_components`."""
    if count < 2 or not profiling:
        return policy(jobs, groups, count, scope)
    incidence = groups if isinstance(groups, Incidence) else Incidence(groups)
    affected = {job for component in components if component & profiling for job in component}
    levels = {
        **policy(jobs, incidence.only(frozenset(incidence.jobs) - affected), count, scope),
        **policy(jobs, incidence.only(frozenset(affected - profiling)), count - 1, scope),
    }
    for group in groups:
        if group.job in profiling:
            levels[group.id] = dict.fromkeys(group.path, count - 1)
    return levels


def reasons(
    jobs: Sequence[Job], components: Sequence[Set[str]], profiling: Set[str], notes: Mapping[str, str]
) -> dict[str, str]:
    """Say in a few words why each job stands where it does; ``notes`` add what else there is to know."""
    # Sorted once for each component, not for each of its jobs: a thousand may be in one.
    together = {
        job: (len(component) - 1, first, profiled)
        for component in components
        for first, profiled in [(sorted(component)[: _NAMES + 1], min(component & profiling, default=None))]
        for job in component
    }
    texts: dict[str, str] = {}
    for job in jobs:
        others, first, profiled = together.get(job.id, (0, [], None))
        parts = [f"R {job.rate:.3f} after {job.iterations} iterations"]
        if job.id in profiling:
            parts = ["being profiled: alone at the top level"]
        elif profiled:
            parts.append(f"below {profiled}, which is being profiled")
        if others:
            shown = ", ".join([name for name in first if name != job.id][:_NAMES])
            shown += f" and {others - _NAMES} more" if others > _NAMES else ""
            parts.append(f"contends with {shown}")
        else:
            parts.append("contends with nobody")
        if job.id in notes:
            parts.append(notes[job.id])
        texts[job.id] = "; ".join(parts)
    return texts
