"""Who sends how much to whom: collectives as flows between a job's hosts, and placement of jobs on hosts.

What a host's GPUs exchange among themselves costs nothing here; hosts exchange what is left, split evenly
over their NICs (NIC i talks to NIC i, as in rail-wise rings).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum

import numpy as np

from simulator.fabric import Fabric, Host
from simulator.plan import Flows, LinkPath


class Collective(StrEnum):
    """What a communication phase does, by its traffic."""

    ALL_REDUCE = "all-reduce"
    """A ring: every host sends 2 (n - 1) / n of the data to the next."""
    ALL_GATHER = "all-gather"
    """A ring that sends (n - 1) / n of the data (reduce-scatter too)."""
    ALL_TO_ALL = "all-to-all"
    """Every host sends 1 / n of the data to each other host (expert parallelism)."""
    PIPELINE = "pipeline"
    """Every host sends the data to the next, and the last to nobody."""


def pairs(collective: Collective, hosts: int) -> Iterator[tuple[int, int]]:
    """Yield (sender, receiver) for every flow of ``collective`` among ``hosts`` hosts (none for one host)."""
    if hosts < 2:
        return
    match collective:
        case Collective.ALL_TO_ALL:
            yield from ((one, other) for one in range(hosts) for other in range(hosts) if one != other)
        case Collective.PIPELINE:
            yield from ((one, one + 1) for one in range(hosts - 1))
        case _:
            yield from ((one, (one + 1) % hosts) for one in range(hosts))


def bytes_per_pair(collective: Collective, hosts: int, size: float) -> float:
    """Return what one sender sends one receiver when the data of a host are ``size`` bytes."""
    share = {
        Collective.ALL_REDUCE: 2 * (hosts - 1) / hosts,
        Collective.ALL_GATHER: (hosts - 1) / hosts,
        Collective.ALL_TO_ALL: 1 / hosts,
        Collective.PIPELINE: 1.0,
    }
    return share[collective] * size


def full_rate_bytes_per_pair(collective: Collective, hosts: int, seconds: float, rate: float) -> float:
    """Return what one sender sends one receiver when a NIC of ``rate`` bytes/s is busy for ``seconds``."""
    receivers = hosts - 1 if collective is Collective.ALL_TO_ALL else 1
    return seconds * rate / receivers


PathChoice = Callable[[Host, Host, int], LinkPath]
"""(source, target, NIC) -> the path a connection takes."""


def ecmp(fabric: Fabric, seed: Sequence[int]) -> PathChoice:
    """Return ECMP's choice: random per connection (source, target, NIC), but the same in every phase."""
    generator = np.random.default_rng(seed)
    chosen: dict[tuple[str, str, int], LinkPath] = {}

    def choose(source: Host, target: Host, nic: int) -> LinkPath:
        key = (source.name, target.name, nic)
        if key not in chosen:
            pick = int(generator.integers(fabric.choices(source, target)))
            chosen[key] = fabric.route(source, target, nic, pick)
        return chosen[key]

    return choose


def flows_between(
    hosts: Sequence[Host], collective: Collective, volume: float, choose: PathChoice
) -> tuple[Flows, ...]:
    """Return the flows of ``collective`` where each NIC-to-NIC connection carries ``volume`` bytes."""
    paths = Counter(
        choose(hosts[one], hosts[other], nic)
        for one, other in pairs(collective, len(hosts))
        for nic in range(len(hosts[one].up))
    )
    return tuple(Flows(path, volume, width) for path, width in paths.items())


class Placement(StrEnum):
    """Which free hosts a job that names none gets."""

    PACKED = "packed"
    """The fullest leaves that fit it whole, else as few leaves as possible."""
    RANDOM = "random"
    """Any."""


def place(
    fabric: Fabric, free: Mapping[str, int], gpus: int, placement: Placement, seed: Sequence[int]
) -> dict[str, int] | None:
    """Return how many of ``gpus`` GPUs to take on which hosts, in ring order, or None where too few are free.

    ``free`` gives the free GPUs of every host. Hosts of a leaf follow each other in the ring when packed, and
    come in the order they were drawn when random. A fabric without hosts has room for everybody.
    """
    if not fabric.hosts:
        return {}
    if sum(free.values()) < gpus:
        return None
    if placement is Placement.RANDOM:
        names = [name for name, count in free.items() if count]
        order = [names[number] for number in np.random.default_rng(seed).permutation(len(names))]
    else:
        by_leaf: dict[int, list[str]] = {}
        for name, count in free.items():
            if count:
                by_leaf.setdefault(fabric.hosts[name].leaf, []).append(name)
        room = {leaf: sum(free[name] for name in names) for leaf, names in by_leaf.items()}
        # Best fit: the leaf with the least room that still fits the job; none fits: the roomiest first.
        leaves = sorted(room, key=lambda leaf: (room[leaf] < gpus, abs(room[leaf] - gpus), leaf))
        order = [name for leaf in leaves for name in sorted(by_leaf[leaf], key=lambda name: -free[name])]
    taken: dict[str, int] = {}
    for name in order:
        taken[name] = min(free[name], gpus)
        gpus -= taken[name]
        if gpus == 0:
            break
    return taken
