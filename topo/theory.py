"""What the fluid model says of a scenario, to print beside what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from controlplane.model import Link, Path
from controlplane.policies import POLICIES, Scope
from simulator.fluid import Communicate, Compute, FluidJob, simulate
from topo.fabric import Fabric
from topo.files import LEVELS
from topo.scenario import Scenario

HORIZON = 600
"""In units: some hundred iterations of every job of the shipped scenarios."""


def long_run(
    scenario: Scenario, fabric: Fabric, policy: str, scope: str, paths: Mapping[str, Sequence[Path]]
) -> dict[str, float]:
    """Return the long-run R of each job whose flows take ``paths`` (by job id, one path a flow)."""
    rate = Fraction(scenario.fabric.rate_mbps)
    jobs = [
        FluidJob(
            job.id,
            (
                Compute(Fraction(job.compute)),
                Communicate(Fraction(job.communicate), tuple(paths[job.id])),
            ),
            Fraction(job.compute) + Fraction(job.communicate),
            intensity=job.intensity,
        )
        for job in scenario.jobs
    ]
    capacity = {
        Link(switch.name, port.number): Fraction(port.rate) / (rate * 10**6)
        for switch in fabric.switches.values()
        for port in switch.ports.values()
    }
    result = simulate(jobs, POLICIES[policy], HORIZON, count=LEVELS, scope=Scope(scope), capacity=capacity)
    return {job.id: float(result.long_run(job.id)) for job in jobs}


def flow_paths(status: Mapping[str, object], scenario: Scenario) -> dict[str, list[Path]] | None:
    """Return the paths of each job's ring connections from a controller's status; None while one is unknown.

    A job with n ranks has n of them; the reverse direction of each carries only acknowledgements.
    """
    flows = status["flows"]
    assert isinstance(flows, list)
    paths: dict[str, list[Path]] = {job.id: [] for job in scenario.jobs}
    for flow in flows:
        if flow["path"] is not None and flow["group"] is not None and flow["job"] in paths:
            paths[flow["job"]].append(tuple(Link.parse(link) for link in flow["path"]))
    if any(len(paths[job.id]) != len(job.hosts) for job in scenario.jobs):
        return None
    return paths
