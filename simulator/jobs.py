"""From a scenario to the jobs that arrive, and from an arrived job and its hosts to its plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controlplane.model import Link
from controlplane.policies.hermod import Key, Kind
from simulator.fabric import Fabric, Host
from simulator.plan import Flows, Phase, Plan
from simulator.replay import sections
from simulator.scenario import JobSection, PhaseSection, Scenario, Traffic
from simulator.traffic import (
    Collective,
    PathChoice,
    bytes_per_pair,
    flows_between,
    full_rate_bytes_per_pair,
)
from simulator.workload import Workload, draw

ENDLESS = 2**62
"""Iterations of a job that runs until the horizon."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job that asks to run from ``start`` on; ``number`` is its place in the scenario."""

    number: int
    start: float
    section: JobSection

    @property
    def gpus(self) -> int:
        """GPUs it asks to be placed on (0: it needs no placing)."""
        return (self.section.gpus or 0) if self.section.hosts is None else 0


def arrivals(scenario: Scenario, fabric: Fabric, seed: int) -> list[Arrival]:
    """Return the scenario's jobs by start time."""
    if scenario.workload is not None:
        if isinstance(scenario.workload, Workload):
            return _drawn_arrivals(scenario.workload, fabric, seed)
        found = sections(scenario.workload, fabric, seed, scenario.horizon_s)
        return [Arrival(number, job.start_s, job) for number, job in enumerate(found)]
    jobs = [Arrival(number, job.start_s, job) for number, job in enumerate(scenario.jobs)]
    return sorted(jobs, key=lambda arrival: (arrival.start, arrival.number))


def _drawn_arrivals(workload: Workload, fabric: Fabric, seed: int) -> list[Arrival]:
    drawn = list(draw(workload, seed))
    gpus = fabric.gpus
    asked = [
        JobSection(
            id=f"job{number + 1}",
            compute_s=job.compute_s,
            bytes=job.bytes,
            collective=Collective.ALL_TO_ALL if job.all_to_all else Collective.ALL_REDUCE,
            gpus=min(job.gpus, gpus),
            iterations=job.iterations,
            jitter=workload.jitter,
        )
        for number, job in enumerate(drawn)
    ]
    busy = [
        min(job.gpus, gpus) * job.iterations * section.alone_s(fabric)
        for job, section in zip(drawn, asked, strict=True)
    ]
    gap = sum(busy) / len(busy) / (workload.load * gpus)
    found = []
    now = 0.0
    for number, (job, section) in enumerate(zip(drawn, asked, strict=True)):
        found.append(Arrival(number, now, section))
        now += job.gap * gap
    return found


def plan(arrival: Arrival, fabric: Fabric, taken: Mapping[str, int], choose: PathChoice) -> Plan:
    """Return what ``arrival`` runs when it has ``taken`` GPUs on each host, in ring order."""
    section = arrival.section
    hosts = [fabric.hosts[name] for name in section.hosts or taken]
    gpus = section.gpus or (sum(host.gpus for host in hosts) if section.hosts else 1)
    phases = _phases_given(section.phases, fabric, hosts, choose) if section.phases else None
    return Plan(
        id=section.id,
        phases=tuple(phases or _phases_simple(section, fabric, hosts, choose)),
        target=section.iterations or ENDLESS,
        gpus=gpus,
        jitter=section.jitter,
        weight=section.weight,
    )


def _phases_simple(
    section: JobSection, fabric: Fabric, hosts: Sequence[Host], choose: PathChoice
) -> list[Phase]:
    flows = _flows(section, fabric, hosts, choose)
    alone = (section.compute_s or 0.0) - section.overlap_s
    phases = [Phase(duration=alone)]
    if section.overlap_s:
        phases.append(Phase((0,), duration=section.overlap_s))
    if flows:
        phases.append(Phase((0,), flows=flows, slack=section.slack_s))
    return phases


def _phases_given(
    sections: Sequence[PhaseSection], fabric: Fabric, hosts: Sequence[Host], choose: PathChoice
) -> list[Phase]:
    places = {section.name: place for place, section in enumerate(sections) if section.name is not None}
    phases = []
    for place, section in enumerate(sections):
        if section.after is None:
            after: tuple[int, ...] = (place - 1,) if place else ()
        else:
            after = tuple(places[name] for name in dict.fromkeys(section.after))
        flows = _flows(section, fabric, hosts, choose)
        phases.append(Phase(after, section.compute_s or 0.0, flows, section.slack_s, _key(section)))
    return phases


def _key(section: PhaseSection) -> Key:
    by_collective = {Collective.ALL_TO_ALL: Kind.EP, Collective.PIPELINE: Kind.PP}
    kind = Kind[section.kind] if section.kind else by_collective.get(section.collective, Kind.DP)
    return Key(section.micro_batch, kind, section.layer)


def _flows(traffic: Traffic, fabric: Fabric, hosts: Sequence[Host], choose: PathChoice) -> tuple[Flows, ...]:
    if not traffic.communicates:
        return ()
    if traffic.paths is not None or not fabric.hosts:
        volume = traffic.bytes if traffic.bytes is not None else (traffic.comm_s or 0.0) * fabric.rate
        number = {str(link): place for place, link in enumerate(fabric.links)}
        names = traffic.paths if traffic.paths is not None else [[str(fabric.links[0])]]
        return tuple(Flows(tuple(number[link] for link in path), volume) for path in names)
    if len(hosts) < 2:
        return ()
    if traffic.bytes is not None:
        volume = bytes_per_pair(traffic.collective, len(hosts), traffic.bytes) / len(hosts[0].up)
    else:
        volume = full_rate_bytes_per_pair(traffic.collective, len(hosts), traffic.comm_s or 0.0, fabric.rate)
    return flows_between(hosts, traffic.collective, volume, choose)


def links_of(path: Sequence[int], fabric: Fabric) -> tuple[Link, ...]:
    """Return a path of link numbers as the controller's links."""
    return tuple(fabric.links[link] for link in path)
