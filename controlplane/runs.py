"""Which run of a job its id stands for, and whose word on it is asked for. Pure.

An id outlives what was measured under it: a job is started anew, goes on in another size or from other hosts,
or somebody else's host reports it. `Runs` says when, so that nothing measured of one run is held against
another. `hosts_to_ask` says who told of a job while it was measured: they are asked from then on, alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import NamedTuple

from controlplane.progress import SAME_START_NS, JobProgress
from controlplane.reports import HostAddress

LEAST_SHARE = 0.1
"""Who tells of a job and sends less than this part of what its greatest sender sends is not asked."""


class Run(NamedTuple):
    """How far a job had come when it was last known."""

    t0_ns: int
    """On the controller's clock."""
    iterations: int


_NOBODYS = Run(0, 0)
"""Compares with nothing."""


@dataclass(frozen=True, slots=True)
class Turnover:
    """What is not as it was at the last look."""

    strange: frozenset[str]
    """Jobs that are gone, or here for the first time: nothing was counted of them."""
    anew: frozenset[str]
    """Jobs that began anew under their old id: nothing that was measured is theirs."""
    altered: frozenset[str]
    """Jobs that go on in another size or from other hosts, and so send other bytes in an iteration."""


class Runs:
    """The runs that the ids of jobs stand for."""

    def __init__(self, earlier: Mapping[str, Run]) -> None:
        """``earlier``: the jobs as they were before the controller was started."""
        self._earlier = dict(earlier)
        self._last: Mapping[str, JobProgress] = {}

    def follow(self, progress: Mapping[str, JobProgress]) -> Turnover:
        """Take in all jobs that there are now."""
        last, self._last = self._last, dict(progress)
        anew: set[str] = set()
        altered: set[str] = set()
        for name, job in progress.items():
            run, earlier = last.get(name), self._earlier.pop(name, _NOBODYS)
            before = earlier if run is None else _comparable(run, job)
            if job.t0_ns > before.t0_ns + SAME_START_NS and job.iterations < before.iterations:
                anew.add(name)
            elif run and run.pinned and (not job.pinned or 0 < run.world_size != job.world_size > 0):
                altered.add(name)
        return Turnover(frozenset(last.keys() ^ progress.keys()), frozenset(anew), frozenset(altered))


def _comparable(run: JobProgress, job: JobProgress) -> Run:
    """Return how far ``run`` had come, where those who tell of ``job`` told of it, too."""
    same = run.pinned == job.pinned and set(run.tellers) <= set(job.tellers)
    return Run(run.t0_ns, run.iterations) if same else _NOBODYS


def hosts_to_ask(
    job: JobProgress,
    asked: Set[str],
    sent: Mapping[HostAddress, int],
    hosts: Mapping[HostAddress, str],
) -> frozenset[str]:
    """Return the hosts that are asked about ``job`` from now on, which has just been measured.

    Those that were ``asked`` so far go on alone while there are any. Others are those that told of it
    meanwhile and sent like it, as far as any of them was counted to send at all: ``sent``, bytes by source;
    ``hosts``: whose sources these are.
    """
    if still := asked & set(job.tellers):
        return frozenset(still)
    of_host: dict[str, int] = {}
    for source, count in sent.items():
        if source in hosts:
            of_host[hosts[source]] = of_host.get(hosts[source], 0) + count
    least = LEAST_SHARE * max(of_host.values(), default=0)
    senders = frozenset(name for name in job.tellers if of_host.get(name, 0) > least)
    return senders or frozenset(job.tellers)
