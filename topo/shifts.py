"""CASSINI's time shifts for the jobs of a lab, from the paths that their flows take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from controlplane.model import Link, Path
from simulator import shifts
from simulator.fabric import Fabric as LinkFabric
from simulator.plan import Flows, Phase, Plan
from simulator.ranking import enter
from topo.fabric import Fabric
from topo.scenario import Scenario


def slots(
    scenario: Scenario, fabric: Fabric, paths: Mapping[str, Sequence[Path]]
) -> dict[str, tuple[float, float]]:
    """Return when each job that shares a link should start its iterations: an offset and a cycle, in s.

    ``paths`` are the links of its flows, by job id. Iterations are taken to be as long as at full line rate,
    a little longer than they are (`topo.lossless.SLACK`): these lengths have a common multiple.
    """
    rate = scenario.fabric.rate_mbps * 1e6 / 8
    links = LinkFabric(rate)
    number = {
        Link(switch.name, port.number): links.add(switch.name, port.number, port.rate / 8)
        for switch in fabric.switches.values()
        for port in switch.ports.values()
    }
    running = []
    for place, job in enumerate(scenario.jobs):
        volume = job.communicate * scenario.unit_s * rate
        flows = tuple(Flows(tuple(number[link] for link in path), volume) for path in paths[job.id])
        phases = (Phase(duration=job.compute * scenario.unit_s), Phase((0,), flows=flows))
        running.append(enter(place, Plan(job.id, phases, 1), links, 0.0, {}))
    offsets, cycles = shifts.as_arrays(running, links)
    return {
        job.id: (offset, cycle)
        for job, offset, cycle in zip(scenario.jobs, offsets.tolist(), cycles.tolist(), strict=True)
        if cycle
    }
