"""Fabrics as the simulator needs them: directed links with capacities, hosts, and the paths between hosts.

Every fabric with switches is a Clos: pods of leaves under aggregation switches, and cores above those. A
leaf-spine is one pod whose aggregation switches are the spines. A link is an egress port, of a switch or of a
host (``h1:1``, its first NIC), so every direction of a cable is a link of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from controlplane.model import Link
from simulator.plan import LinkPath
from simulator.state import Floats

BYTES_PER_GBIT = 1e9 / 8


@dataclass(frozen=True, slots=True)
class Host:
    """A host: where it hangs, its GPUs, and per NIC the link it sends on and the leaf's link towards it."""

    name: str
    pod: int
    leaf: int
    gpus: int
    up: LinkPath
    down: LinkPath


@dataclass
class Fabric:
    """Links (their number is their place in ``links``) and hosts by name.

    ``rate`` is the 'full rate' in bytes/s that communication times of a scenario refer to: a NIC's.
    ``capacity`` is in bytes/s. ``leaf_up[leaf][agg]`` and the rest are link numbers.
    """

    rate: float
    links: list[Link] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    hosts: dict[str, Host] = field(default_factory=dict)
    leaf_up: list[LinkPath] = field(default_factory=list)
    leaf_down: list[LinkPath] = field(default_factory=list)
    agg_up: list[list[LinkPath]] = field(default_factory=list)
    agg_down: list[list[LinkPath]] = field(default_factory=list)

    @property
    def capacity(self) -> Floats:
        """The links' capacities, bytes/s."""
        return np.array(self.rates)

    @property
    def gpus(self) -> int:
        """GPUs of all hosts."""
        return sum(host.gpus for host in self.hosts.values())

    def add(self, switch: str, port: int, rate: float) -> int:
        """Add a link of ``rate`` bytes/s and return its number."""
        self.links.append(Link(switch, port))
        self.rates.append(rate)
        return len(self.links) - 1

    def choices(self, source: Host, target: Host) -> int:
        """Return how many paths ECMP can choose from between two hosts' NICs."""
        if source.leaf == target.leaf:
            return 1
        aggs = len(self.leaf_up[source.leaf])
        return aggs if source.pod == target.pod else aggs * len(self.agg_up[source.pod][0])

    def route(self, source: Host, target: Host, nic: int, choice: int) -> LinkPath:
        """Return path ``choice`` of `choices` from ``source`` to ``target``, NIC ``nic`` of each."""
        first, last = source.up[nic], target.down[nic]
        if source.leaf == target.leaf:
            return (first, last)
        aggs = len(self.leaf_up[source.leaf])
        agg, core = choice % aggs, choice // aggs
        up, down = self.leaf_up[source.leaf][agg], self.leaf_down[target.leaf][agg]
        if source.pod == target.pod:
            return (first, up, down, last)
        over, back = self.agg_up[source.pod][agg][core], self.agg_down[target.pod][agg][core]
        return (first, up, over, back, down, last)


def parallel(number: int, gbps: float) -> Fabric:
    """Return ``number`` separate links ``S1:1``, ``S1:2`` ... without hosts."""
    fabric = Fabric(gbps * BYTES_PER_GBIT)
    for port in range(1, number + 1):
        fabric.add("S1", port, fabric.rate)
    return fabric


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a Clos is made of besides hosts; rates in Gbit/s."""

    aggs: int
    cores_per_agg: int
    gpus_per_host: int
    nics_per_host: int
    nic_gbps: float
    uplink_gbps: float
    core_gbps: float


def clos(pods: Sequence[Sequence[Sequence[str]]], sizes: Sizes, agg_name: str = "agg") -> Fabric:
    """Return a Clos over the hosts' names by pod and leaf.

    A leaf has a link to each of its pod's ``aggs`` aggregation switches. Number i of these in every pod
    shares ``cores_per_agg`` core switches with number i in the other pods. Ports count from 1: a leaf's hosts
    come first, then its aggregation switches; an aggregation switch has its leaves first, then its cores.
    """
    fabric = Fabric(sizes.nic_gbps * BYTES_PER_GBIT)
    uplink, core_rate = sizes.uplink_gbps * BYTES_PER_GBIT, sizes.core_gbps * BYTES_PER_GBIT
    for pod, leaves in enumerate(pods):
        aggs = [f"{agg_name}{pod * sizes.aggs + number + 1}" for number in range(sizes.aggs)]
        for place, names in enumerate(leaves):
            leaf = len(fabric.leaf_up)
            switch = f"leaf{leaf + 1}"
            port = 0
            for name in names:
                nics = range(1, sizes.nics_per_host + 1)
                up = tuple(fabric.add(name, nic, fabric.rate) for nic in nics)
                down = tuple(fabric.add(switch, port + nic, fabric.rate) for nic in nics)
                port += sizes.nics_per_host
                fabric.hosts[name] = Host(name, pod, leaf, sizes.gpus_per_host, up, down)
            fabric.leaf_up.append(
                tuple(fabric.add(switch, port + number + 1, uplink) for number in range(sizes.aggs))
            )
            fabric.leaf_down.append(tuple(fabric.add(agg, place + 1, uplink) for agg in aggs))
        if len(pods) > 1:
            cores = range(sizes.cores_per_agg)
            fabric.agg_up.append(
                [tuple(fabric.add(agg, len(leaves) + core + 1, core_rate) for core in cores) for agg in aggs]
            )
            fabric.agg_down.append(
                [
                    tuple(
                        fabric.add(f"core{number * sizes.cores_per_agg + core + 1}", pod + 1, core_rate)
                        for core in cores
                    )
                    for number in range(sizes.aggs)
                ]
            )
    return fabric
