"""Flows out of RDMA queue pairs: each host knows its own half of a connection only.

A host reports, for each queue pair of a job, its own address, the local and the remote number. The other half
is what another host reports of the same job with the two numbers exchanged; together they make a flow in each
direction, from one's address to the other's, known by the destination queue pair in its BTH.

Numbers are a host's own, so the same two may come twice in a job of many hosts. Halves whose NCCL
communicators are known and differ do not fit. Where more than one fits still, nobody can say which it is:
such a half is *ambiguous*, is counted, and makes no flow; its packets go at the default level. It never is
guessed, since a wrong pair would promote another connection's packets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from controlplane.model import FiveTuple
from controlplane.reports import QueuePairReport

ROCE_PORT = 4791
UDP = 17


class Owner(NamedTuple):
    """Whose a flow is."""

    host: str
    job: str


class QueuePairs:
    """All hosts' queue pairs."""

    def __init__(self) -> None:
        self._of_host: dict[str, frozenset[QueuePairReport]] = {}
        self.ambiguous = 0
        """Halves that fit more than one other."""
        self.alone = 0
        """Halves whose other half no host has reported."""

    def observe(self, host: str, pairs: Iterable[QueuePairReport]) -> bool:
        """Take in all queue pairs of ``host``; say whether they are others than before."""
        now = frozenset(pairs)
        if now == self._of_host.get(host, frozenset()):
            return False
        self._of_host[host] = now
        return True

    def forget(self, host: str) -> bool:
        """Drop the queue pairs of ``host``; say whether it had any."""
        return bool(self._of_host.pop(host, None))

    def flows(self) -> Mapping[FiveTuple, Owner]:
        """Return the flows of all queue pairs whose other half is known, and whose they are."""
        halves: dict[tuple[str, int, int], list[tuple[str, QueuePairReport]]] = {}
        for host, pairs in sorted(self._of_host.items()):
            for pair in pairs:
                halves.setdefault((pair.job, pair.local, pair.remote), []).append((host, pair))
        self.ambiguous = self.alone = 0
        found: dict[FiveTuple, Owner] = {}
        for (job, local, remote), mine in halves.items():
            others = halves.get((job, remote, local), [])
            for host, pair in mine:
                fitting = list(_fitting(host, pair, others))
                if not fitting:
                    self.alone += 1
                elif len(fitting) > 1 or len(list(_fitting(*fitting[0], mine))) > 1:
                    self.ambiguous += 1
                else:
                    found[_flow(pair, fitting[0][1])] = Owner(host, job)
        return found


def _fitting(
    host: str, pair: QueuePairReport, others: Iterable[tuple[str, QueuePairReport]]
) -> Iterator[tuple[str, QueuePairReport]]:
    for other_host, other in others:
        told = pair.communicator and other.communicator
        if (
            other_host != host
            and other.source.version == pair.source.version
            and not (told and pair.communicator != other.communicator)
        ):
            yield other_host, other


def _flow(pair: QueuePairReport, other: QueuePairReport) -> FiveTuple:
    return FiveTuple(pair.source, other.source, UDP, pair.source_port, ROCE_PORT, pair.remote)
