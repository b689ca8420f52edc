"""A job as the engine runs it: the phases of one iteration, and the flows each of them sends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from controlplane.policies.hermod import Key
from simulator.state import Floats

LinkPath = tuple[int, ...]
"""The numbers of the links a flow crosses, first hop first."""

NO_KEY = Key()
"""Of coflows among which a job has no order."""


@dataclass(frozen=True, slots=True)
class Flows:
    """``width`` flows of ``volume`` bytes each along one path."""

    path: LinkPath
    volume: float
    width: int = 1


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of an iteration that starts when the phases ``after`` (their places) have ended.

    It communicates when it has ``flows`` and computes for ``duration`` seconds when it has none. For
    ``slack`` seconds its flows harm nobody by waiting, and run at the lowest level. ``key`` is its place
    among the job's own coflows.
    """

    after: tuple[int, ...] = ()
    duration: float = 0.0
    flows: tuple[Flows, ...] = ()
    slack: float = 0.0
    key: Key = NO_KEY


@dataclass(frozen=True)
class Plan:
    """A placed job: ``target`` iterations of ``phases``. A phase only waits for phases above it."""

    id: str
    phases: tuple[Phase, ...]
    target: int
    gpus: int = 1
    jitter: float = 0.0
    weight: float = 1.0

    @cached_property
    def groups(self) -> tuple[tuple[LinkPath, Key], ...]:
        """The different paths, and coflows' keys, of the job's flows: one group each."""
        return tuple(dict.fromkeys((flows.path, phase.key) for phase in self.phases for flows in phase.flows))

    @cached_property
    def compute_s(self) -> float:
        """Seconds of computing in an iteration."""
        return sum(phase.duration for phase in self.phases if not phase.flows)

    def link_seconds(self, capacity: Floats) -> dict[int, float]:
        """Return what an iteration asks of each link, in seconds of the link's whole rate."""
        return link_seconds((flows for phase in self.phases for flows in phase.flows), capacity)

    def timeline(self, capacity: Floats) -> list[tuple[float, float]]:
        """Return when each phase starts and ends in an iteration alone at full bandwidth.

        A phase takes as long as its busiest link needs.
        """
        times: list[tuple[float, float]] = []
        for phase in self.phases:
            start = max((times[place][1] for place in phase.after), default=0.0)
            busiest = max(link_seconds(phase.flows, capacity).values(), default=phase.duration)
            times.append((start, start + busiest))
        return times

    def ideal_s(self, capacity: Floats) -> float:
        """Return T_ideal: the time of one iteration alone at full bandwidth.

        It is as long as the longest chain of phases. Nothing is faster. A job alone reaches it when its
        concurrent phases share no link and the flows of each phase are equal, as collectives are: the busiest
        link's flows then get equal shares of it, and no other flow gets less.
        """
        return max(end for _, end in self.timeline(capacity))


def link_seconds(all_flows: Iterable[Flows], capacity: Floats) -> dict[int, float]:
    """Return what ``all_flows`` ask of each link, in seconds of the link's whole rate."""
    seconds: dict[int, float] = {}
    for flows in all_flows:
        for link in flows.path:
            seconds[link] = seconds.get(link, 0.0) + flows.width * flows.volume / float(capacity[link])
    return seconds
