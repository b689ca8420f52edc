"""The flows that agents report: whose they are and how much they have sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from controlplane.model import FiveTuple
from controlplane.queue_pairs import QueuePairs
from controlplane.reports import MAX_FLOWS, HostReport


@dataclass(frozen=True, slots=True)
class KnownFlow:
    """A flow as its source's host reports it."""

    host: str
    job: str
    bytes_sent: int
    control: bool = False
    """Its host says that it is no collective."""
    counted: bool = True
    """``bytes_sent`` is known: not for flows of RDMA queue pairs, which carry nothing but collectives."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a report changed."""

    opened: tuple[FiveTuple, ...] = ()
    closed: tuple[FiveTuple, ...] = ()
    refused: int = 0
    """Flows beyond the number that one host may have."""
    ranked: bool = False
    """The flows to be ranked, or their jobs, are not the same as before."""


class Flows:
    """All hosts' flows. A host reports only flows that it sends, so no flow is reported by two.

    A flow is to be ranked once it has sent ``min_bytes``, unless its host says that it is no collective.
    Those of RDMA queue pairs follow from what two hosts report, and are to be ranked at once.
    """

    def __init__(self, min_bytes: int) -> None:
        self._min_bytes = min_bytes
        self._flows: dict[FiveTuple, KnownFlow] = {}
        self._of_host: dict[str, set[FiveTuple]] = {}
        self._paired: frozenset[FiveTuple] = frozenset()
        self.queue_pairs = QueuePairs()

    def __iter__(self) -> Iterator[FiveTuple]:
        return iter(self._flows)

    def __len__(self) -> int:
        return len(self._flows)

    @property
    def known(self) -> Mapping[FiveTuple, KnownFlow]:
        """Every flow there is; a view that follows later changes."""
        return MappingProxyType(self._flows)

    def ranked(self) -> Iterator[tuple[FiveTuple, str]]:
        """Yield the flows to be ranked, with their jobs."""
        for flow, known in self._flows.items():
            if (job := self._ranked_as(known)) is not None:
                yield flow, job

    def observe(self, host: str, report: HostReport) -> Change:
        """Take in the flows of ``report``; a full one replaces all that was known of ``host``."""
        mine = self._of_host.setdefault(host, set())
        gone = mine.intersection(report.closed)
        if report.full:
            gone |= mine - {state.flow for state in report.flows}
        ranked = bool(gone)
        self._drop(mine, gone)
        opened: list[FiveTuple] = []
        refused = 0
        for state in report.flows:
            before = self._flows.get(state.flow)
            if before is None:
                if len(mine) >= MAX_FLOWS:
                    refused += 1
                    continue
                opened.append(state.flow)
                mine.add(state.flow)
            sent = max(state.bytes_sent, before.bytes_sent if before else 0)
            after = self._flows[state.flow] = KnownFlow(host, state.job, sent, state.control)
            ranked |= self._ranked_as(before) != self._ranked_as(after)
        change = Change(tuple(opened), tuple(gone), refused, ranked)
        if report.queue_pairs is not None and self.queue_pairs.observe(host, report.queue_pairs):
            return self._pair(change)
        return change

    def forget(self, host: str) -> Change:
        """Drop all flows of ``host``."""
        mine = self._of_host.pop(host, set())
        gone = tuple(mine)
        self._drop(mine, set(gone))
        change = Change(closed=gone, ranked=bool(gone))
        return self._pair(change) if self.queue_pairs.forget(host) else change

    def _pair(self, change: Change) -> Change:
        """Bring the flows of queue pairs up to date; return ``change`` with what that changes."""
        flows = self.queue_pairs.flows()
        gone, new = self._paired - flows.keys(), flows.keys() - self._paired
        for flow in gone:
            del self._flows[flow]
        for flow, owner in flows.items():
            self._flows[flow] = KnownFlow(owner.host, owner.job, 0, counted=False)
        self._paired = frozenset(flows)
        return Change(
            (*change.opened, *new),
            (*change.closed, *gone),
            change.refused,
            change.ranked or bool(gone or new),
        )

    def _ranked_as(self, known: KnownFlow | None) -> str | None:
        """Return the job that a flow is ranked under, if it is ranked."""
        if known is None or known.control or (known.counted and known.bytes_sent < self._min_bytes):
            return None
        return known.job

    def _drop(self, mine: set[FiveTuple], gone: set[FiveTuple]) -> None:
        mine -= gone
        for flow in gone:
            del self._flows[flow]
