"""Flows out of RDMA queue pairs: each host knows its own half of a connection only.

A host reports, for each queue pair of a job, its own address, the local and the remote number. The other half
is what another host reports of the same job with the two numbers exchanged; together they make a flow in each
direction, from one's address to the other's, known by the destination queue pair in its BTH.

Numbers are a host's own, so the same two may come twice in a job of many hosts. Halves whose NCCL
communicators are known and differ do not fit. Where more than one fits still, nobody can say which it is:
such a half is *ambiguous*, is counted, and makes no flow; its packets go at the default level. It never is
guessed, since a wrong pair would promote another connection's packets.

A pair that has been found stays as long as both halves are reported: any host may report any numbers under
any job's name, and must not part others by making theirs ambiguous.
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


class _Half(NamedTuple):
    """One half of a connection, whatever is known of its communicator."""

    host: str
    pair: QueuePairReport
    """With communicator 0."""


class QueuePairs:
    """All hosts' queue pairs."""

    def __init__(self) -> None:
        self._of_host: dict[str, frozenset[QueuePairReport]] = {}
        self._found: dict[_Half, _Half] = {}
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
        present = {
            _Half(host, pair._replace(communicator=0)): pair
            for host, pairs in sorted(self._of_host.items())
            for pair in pairs
        }
        found = {
            one: other
            for one, other in self._found.items()
            if one in present and other in present and _agree(present[one], present[other])
        }
        halves: dict[tuple[str, int, int], list[tuple[str, QueuePairReport]]] = {}
        for half, pair in present.items():
            if half not in found:
                halves.setdefault((pair.job, pair.local, pair.remote), []).append((half.host, pair))
        self.ambiguous = self.alone = 0
        for (job, local, remote), mine in halves.items():
            others = halves.get((job, remote, local), [])
            for host, pair in mine:
                fitting = list(_fitting(host, pair, others))
                if not fitting:
                    self.alone += 1
                elif len(fitting) > 1 or len(list(_fitting(*fitting[0], mine))) > 1:
                    self.ambiguous += 1
                else:
                    other_host, other = fitting[0]
                    one = _Half(host, pair._replace(communicator=0))
                    found[one] = _Half(other_host, other._replace(communicator=0))
        self._found = found
        return {_flow(one.pair, other.pair): Owner(one.host, one.pair.job) for one, other in found.items()}


def _fitting(
    host: str, pair: QueuePairReport, others: Iterable[tuple[str, QueuePairReport]]
) -> Iterator[tuple[str, QueuePairReport]]:
    for other_host, other in others:
        if other_host != host and other.source.version == pair.source.version and _agree(pair, other):
            yield other_host, other


def _agree(one: QueuePairReport, other: QueuePairReport) -> bool:
    """Say whether their communicators are the same, as far as both are known."""
    return not (one.communicator and other.communicator) or one.communicator == other.communicator


def _flow(pair: QueuePairReport, other: QueuePairReport) -> FiveTuple:
    return FiveTuple(pair.source, other.source, UDP, pair.source_port, ROCE_PORT, pair.remote)
