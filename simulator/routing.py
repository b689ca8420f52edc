"""Crux's path selection, for policy crux and for any with ``policy.paths = "crux"``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from controlplane.policies.crux import Demand, choose_paths
from simulator.fabric import Fabric, Host
from simulator.plan import Flows, LinkPath, Plan
from simulator.ranking import Running, enter


class Router:
    """Knows the paths that a connection could take. Paths that a scenario lays along given links stay."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._sender = {
            link: (host, nic) for host in fabric.hosts.values() for nic, link in enumerate(host.up)
        }
        self._receiver = {link: host for host in fabric.hosts.values() for link in host.down}
        self._candidates: dict[tuple[str, str, int], tuple[LinkPath, ...]] = {}

    def spread(self, running: Sequence[Running]) -> list[Running]:
        """Return the jobs with every connection on the path that Crux selects for it now."""
        connections: dict[tuple[int, LinkPath], float] = {}
        for place, job in enumerate(running):
            for phase in job.plan.phases:
                for flows in phase.flows:
                    key = place, flows.path
                    connections[key] = (
                        connections.get(key, 0.0) + flows.width * flows.volume / self._fabric.rate
                    )
        candidates = [self._paths(path) for _, path in connections]
        demands = [
            Demand(running[place].plan.id, paths, load)
            for ((place, _), load), paths in zip(connections.items(), candidates, strict=True)
        ]
        chosen = choose_paths([job.seen(0.0, 0) for job in running], demands)
        new = {key: paths[number] for key, paths, number in zip(connections, candidates, chosen, strict=True)}
        return [
            enter(job.number, _moved(job.plan, place, new), self._fabric, job.start, job.taken)
            for place, job in enumerate(running)
        ]

    def _paths(self, path: LinkPath) -> tuple[LinkPath, ...]:
        if path[0] not in self._sender or path[-1] not in self._receiver:
            return (path,)
        (source, nic), target = self._sender[path[0]], self._receiver[path[-1]]
        return self._between(source, target, nic)

    def _between(self, source: Host, target: Host, nic: int) -> tuple[LinkPath, ...]:
        key = source.name, target.name, nic
        if key not in self._candidates:
            fabric = self._fabric
            self._candidates[key] = tuple(
                fabric.route(source, target, nic, choice) for choice in range(fabric.choices(source, target))
            )
        return self._candidates[key]


def _moved(plan: Plan, place: int, new: dict[tuple[int, LinkPath], LinkPath]) -> Plan:
    """Return ``plan`` with its flows on their new paths, in the same rows."""
    phases = tuple(
        replace(
            phase,
            flows=tuple(Flows(new[place, flows.path], flows.volume, flows.width) for flows in phase.flows),
        )
        for phase in plan.phases
    )
    return replace(plan, phases=phases)
