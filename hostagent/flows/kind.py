"""Telling a job's collectives from its control connections, by volume and by peers.

A training process also has connections to rendezvous stores, schedulers, metrics, SSH and storage. None of
them is to be ranked: they are few bytes that nobody must wait for, or they are no step of the training. There
is no port or name to know a collective by, so the rule is, for each connection of a job, in this order:

0. *Told.* What the NCCL plugin names as a connection of a communicator is a collective's.
1. *Service ports.* Where either port is one of SERVICE_PORTS, it is control.
2. *Shared peers.* Where another job of this host has a connection to the same address and port, that is a
   service that both use (a store, an object server), and it is control. A collective's listening port
   belongs to one job.
3. *Volume.* Until it has carried MIN_BYTES in both directions together, it is control.
4. *Share.* Volume is counted with a half-life of HALF_LIFE_S, so that what a connection did long ago counts
   for less. Below SHARE of what the job's busiest connection carried, it is control: the connections of one
   collective carry about the same, and a rendezvous store some kilobytes against their gigabytes. One that
   was a collective stays one until it falls below SHARE / HYSTERESIS.

Everything else is a collective.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from hostagent.flows.connection import FiveTuple

SERVICE_PORTS = frozenset(
    {22, 53, 80, 111, 123, 389, 443, 445, 636, 988, 2049, 2379, 2380, 3260, 3300, 4420, 6443, 6789, 8009}
    | {8443, 9092, 9100, 9443, 10250}
)
"""SSH, DNS, HTTP and S3, NFS, LDAP, SMB, Lustre, iSCSI, NVMe, Ceph, etcd, Kubernetes, Kafka, metrics."""

MIN_BYTES = 65_536
"""Volume below which a connection is control: rendezvous and bootstrap exchanges are smaller."""

SHARE = 0.01
HYSTERESIS = 5
HALF_LIFE_S = 30.0


class FlowKind(IntEnum):
    """What a flow is for; the numbers are the protocol's."""

    COLLECTIVE = 1
    CONTROL = 2


class Volume:
    """The decaying volume of one connection."""

    __slots__ = ("_at_ns", "_counted", "_recent", "total")

    def __init__(self, total: int, now_ns: int) -> None:
        self.total = total
        """Bytes carried so far; it may be set at any time."""
        self._counted = total
        self._recent = float(total)
        self._at_ns = now_ns

    def recent(self, now_ns: int) -> float:
        """Return the decayed volume at ``now_ns``; what was added since the last call counts in full."""
        faded = float(self._recent * 0.5 ** ((now_ns - self._at_ns) / (HALF_LIFE_S * 1e9)))
        self._recent, self._at_ns = faded + max(0, self.total - self._counted), now_ns
        self._counted = self.total
        return self._recent


def kinds(
    volumes: Mapping[FiveTuple, Volume],
    before: Mapping[FiveTuple, FlowKind],
    shared: frozenset[tuple[bytes, int]],
    now_ns: int,
) -> dict[FiveTuple, FlowKind]:
    """Tell the kinds of all connections of one job.

    ``volumes`` has them all; ``before`` what they were; ``shared`` the addresses and ports that other jobs of
    this host are connected to as well.
    """
    candidates: dict[FiveTuple, float] = {}
    for flow, volume in volumes.items():
        if not (is_service(flow) or (flow.destination, flow.destination_port) in shared):
            candidates[flow] = volume.recent(now_ns)
    busiest = max(candidates.values(), default=0.0)
    found: dict[FiveTuple, FlowKind] = {}
    for flow, volume in volumes.items():
        was = before.get(flow) is FlowKind.COLLECTIVE
        least = busiest * SHARE / (HYSTERESIS if was else 1)
        carries = flow in candidates and volume.total >= MIN_BYTES and candidates[flow] >= least
        found[flow] = FlowKind.COLLECTIVE if carries else FlowKind.CONTROL
    return found


def is_service(flow: FiveTuple) -> bool:
    """Say whether either port is a well-known service's."""
    return flow.source_port in SERVICE_PORTS or flow.destination_port in SERVICE_PORTS
