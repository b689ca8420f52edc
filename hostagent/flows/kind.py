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
4. *Share.* Volume is counted with a half-life (`hostagent.flows.flow`), so that what a connection did long
   ago counts for less. Below SHARE of what the job's busiest connection carried, it is control: the
   connections of one collective carry about the same, and a rendezvous store some kilobytes against their
   gigabytes. One that was a collective stays one until it falls below SHARE / HYSTERESIS.

Everything else is a collective.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf, log2

from hostagent.flows.connection import FiveTuple
from hostagent.flows.flow import Flow, FlowKind

SERVICE_PORTS = frozenset(
    {22, 53, 80, 111, 123, 389, 443, 445, 636, 988, 2049, 2379, 2380, 3260, 3300, 4420, 6443, 6789, 8009}
    | {8443, 9092, 9100, 9443, 10250}
)
"""SSH, DNS, HTTP and S3, NFS, LDAP, SMB, Lustre, iSCSI, NVMe, Ceph, etcd, Kubernetes, Kafka, metrics."""

MIN_BYTES = 65_536
"""Volume below which a connection is control: rendezvous and bootstrap exchanges are smaller."""

SHARE = 0.01
HYSTERESIS = 5
_SHARE, _LOST = log2(SHARE), log2(SHARE / HYSTERESIS)


def kinds(
    flows: Mapping[FiveTuple, Flow], shared: frozenset[tuple[bytes, int]]
) -> Iterator[tuple[FiveTuple, FlowKind]]:
    """Yield the flows of one job whose kind is another than ``flows`` have, and which.

    ``flows`` has all of the job's; ``shared`` the addresses and ports that other jobs of this host are
    connected to as well. A flow costs some 100 ns, as long as nothing is yielded: there may be 10,000.
    """
    served = {key for key in flows if (key.destination, key.destination_port) in shared} if shared else ()
    busiest = max(
        (flow.weight for key, flow in flows.items() if not (flow.service or key in served)), default=-inf
    )
    least, kept = busiest + _SHARE, busiest + _LOST
    for key, flow in flows.items():
        was = flow.kind is FlowKind.COLLECTIVE
        carries = flow.weight >= (kept if was else least) and flow.carried >= MIN_BYTES
        is_ = bool(flow.communicator) or (carries and not (flow.service or key in served))
        if is_ != was:
            yield key, FlowKind.COLLECTIVE if is_ else FlowKind.CONTROL


def is_service(flow: FiveTuple) -> bool:
    """Say whether either port is a well-known service's."""
    return flow.source_port in SERVICE_PORTS or flow.destination_port in SERVICE_PORTS
