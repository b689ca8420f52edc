"""What CASSINI is told of the running jobs, and the time shifts it gives, as the engine's arrays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from controlplane.model import Link
from controlplane.policies.cassini import Burst, Pattern, time_shifts
from simulator.fabric import Fabric
from simulator.plan import link_seconds
from simulator.ranking import Running
from simulator.state import Floats


def patterns(running: Sequence[Running], fabric: Fabric) -> dict[Link, dict[str, Pattern]]:
    """Return what each job, alone, asks of each link in an iteration.

    A phase's busiest link is full while the phase lasts; the others carry as much less as they have less to
    carry.
    """
    capacity = fabric.capacity
    found: defaultdict[Link, dict[str, Pattern]] = defaultdict(dict)
    for job in running:
        bursts: defaultdict[int, list[Burst]] = defaultdict(list)
        for phase, (start, end) in zip(job.plan.phases, job.plan.timeline(capacity), strict=True):
            for link, seconds in link_seconds(phase.flows, capacity).items():
                if seconds > 0:
                    bursts[link].append((start, end, seconds / (end - start)))
        for link, on in bursts.items():
            found[fabric.links[link]][job.plan.id] = Pattern(job.ideal_s, tuple(on))
    return found


def as_arrays(running: Sequence[Running], fabric: Fabric) -> tuple[Floats, Floats]:
    """Return each job's time shift and its iterations' length (0: it shares no link, and needs none)."""
    on_links = patterns(running, fabric)
    shifts = time_shifts(on_links)
    sharing = {job for on in on_links.values() if len(on) > 1 for job in on}
    return (
        np.array([shifts.get(job.plan.id, 0.0) for job in running]),
        np.array([job.ideal_s if job.plan.id in sharing else 0.0 for job in running]),
    )
