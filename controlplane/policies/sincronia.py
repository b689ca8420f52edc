"""Sincronia (SIGCOMM 2018): bottleneck-select-scale-iterate (BSSI) orders coflows by their demand on ports.

A job's communication of one iteration is its coflow, and repeats, so the order changes only when jobs come or
go. The paper orders what is left of each coflow on a big switch's ingress and egress ports of equal speed;
here every link on a path is a port, all are taken for equally fast, and the demand is that of a whole
iteration.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from controlplane.model import Group, Job, Levels, Link
from controlplane.policies.interface import Scope
from controlplane.policies.ordered import levels_in_order


def levels(jobs: Sequence[Job], groups: Sequence[Group], count: int, scope: Scope) -> Levels:
    """Rank jobs in BSSI's order, weighted by their ``weight``.

    Under scope ``fabric`` the first ``count`` - 1 jobs get a level each and the rest share the last, as in
    the paper; under the others so do the jobs that meet on each switch or link. ValueError as for every
    policy.
    """
    order = bssi(jobs, groups)
    if scope is not Scope.FABRIC:
        return levels_in_order(order, groups, count, scope)
    if count < 1:
        raise ValueError(f"count = {count}: there must be at least one level")
    level = {job: max(count - 1 - place, 0) for place, job in enumerate(order)}
    return {group.id: dict.fromkeys(group.path, level[group.job]) for group in groups}


def bssi(jobs: Sequence[Job], groups: Sequence[Group]) -> list[str]:
    """Return the jobs' ids, first to go first.

    From the back: on the port with the largest demand, the job of the least weight per demand goes last, and
    the others' weights there are scaled down by what they waited. Ties go to the smaller link and to the
    larger id (which goes last). Jobs that send nothing contend with nobody and go first. ValueError: a
    group's job is not among ``jobs``.
    """
    weight = {job.id: job.weight for job in jobs}
    demand: defaultdict[Link, dict[str, float]] = defaultdict(dict)
    for group in groups:
        if group.job not in weight:
            raise ValueError(f"group {group.id}: job {group.job!r} is not among the jobs")
        for link in group.path:
            demand[link][group.job] = demand[link].get(group.job, 0.0) + group.load
    total = {link: sum(on.values()) for link, on in demand.items()}
    left = {job for on in demand.values() for job in on}
    links_of: defaultdict[str, list[Link]] = defaultdict(list)
    for link, on in demand.items():
        for job in on:
            links_of[job].append(link)
    backwards: list[str] = []
    while left:
        bottleneck = min(total, key=lambda link: (-total[link], link))
        on = demand[bottleneck]
        # By ascending ratio, and among equals by descending id.
        least = min(weight[job] / size for job, size in on.items())
        last = max(job for job, size in on.items() if weight[job] / size <= least)
        for job, size in on.items():
            if job != last:
                weight[job] -= least * size
        backwards.append(last)
        left.remove(last)
        for link in links_of[last]:
            total[link] -= demand[link].pop(last)
            if not demand[link]:
                del total[link]
    idle = sorted(job.id for job in jobs if job.id not in links_of)
    return idle + backwards[::-1]
