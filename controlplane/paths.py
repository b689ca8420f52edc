"""Paths learnt by probe: which probes are out, and what a sunk one says of its flow.

No I/O: the caller sends the probes (through the source host's agent), hands in what the switches sank, and
says what time it is. A path is never assumed; a report that does not make one raises ``PathError``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controlplane.int_report import IntReport
from controlplane.model import FiveTuple, Link, Path

INSTRUCTIONS = 0xDC00
"""What probes ask of each hop: node id, ports, queue and occupancy, ingress and egress timestamps."""


class PathError(ValueError):
    """A sunk probe that tells no path: the text says why."""


def path_of(
    report: IntReport, switch_of_node: Mapping[int, str], behind: Mapping[Link, Link] | None = None
) -> Path:
    """Return the links that ``report`` says its flow crosses, first hop first.

    ``behind``: (switch, ingress port) -> the link that leads there from a switch that adds no hop of its own
    (Open vSwitch): where a probe came in there, it had crossed that link.

    Raises PathError for a stack that is empty or incomplete, lacks a node id or egress port, names a node
    that ``switch_of_node`` does not know, or passes a switch twice.
    """
    if report.hops_exceeded or report.mtu_exceeded:
        raise PathError("a switch found no room for its hop")
    if not report.hops:
        raise PathError("no switch added a hop")
    links: list[Link] = []
    for number, hop in enumerate(report.hops, start=1):
        if hop.node_id is None or hop.egress_port is None:
            raise PathError(f"hop {number} does not tell its node id and egress port")
        switch = switch_of_node.get(hop.node_id)
        if switch is None:
            raise PathError(f"hop {number} is node {hop.node_id}, which the configuration does not know")
        if behind and hop.ingress_port is not None:
            links += filter(None, [behind.get(Link(switch, hop.ingress_port))])
        links.append(Link(switch, hop.egress_port))
    if len({link.switch for link in links}) < len(links):
        raise PathError(f"a loop: {', '.join(map(str, links))}")
    return tuple(links)


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe to send: ``number`` is unique in this controller's life, and comes back in ProbeSent."""

    number: int
    flow: FiveTuple


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a sunk probe told: all the known ``flows`` that take ``path`` (they share a 5-tuple)."""

    flows: tuple[FiveTuple, ...]
    path: Path
    changed: bool
    """Whether that differs from what was known of any of them."""


@dataclass(slots=True)
class _Tracked:
    path: Path | None = None
    due_s: float = 0.0
    tries: int = 0
    number: int | None = None
    flows: dict[FiveTuple, None] = field(default_factory=dict)


class Paths:
    """The flows whose paths are wanted, by 5-tuple: RoCEv2 queue pairs behind one share its path.

    A probe that does not come back is sent again after ``retry_s``, twice as long each time up to
    ``refresh_s``; a path that is known is asked for again after ``refresh_s``. ``behind``: see `path_of`.
    """

    def __init__(
        self,
        switch_of_node: Mapping[int, str],
        *,
        behind: Mapping[Link, Link] | None = None,
        retry_s: float = 0.2,
        refresh_s: float = 30.0,
    ) -> None:
        self._switch_of_node = dict(switch_of_node)
        self._behind = dict(behind or {})
        self._retry_s = retry_s
        self._refresh_s = refresh_s
        self._tracked: dict[FiveTuple, _Tracked] = {}
        self._by_number: dict[int, FiveTuple] = {}
        self._last_number = 0

    def add(self, flow: FiveTuple) -> None:
        """Want the path of ``flow``: its first probe is due at once."""
        key = _wire(flow)
        self._tracked.setdefault(key, _Tracked()).flows[flow] = None

    def remove(self, flow: FiveTuple) -> None:
        """Forget ``flow``; nothing happens where it is not known."""
        key = _wire(flow)
        tracked = self._tracked.get(key)
        if tracked is None:
            return
        tracked.flows.pop(flow, None)
        if not tracked.flows:
            self._forget_number(tracked)
            del self._tracked[key]

    def path(self, flow: FiveTuple) -> Path | None:
        """Return the path of ``flow`` as last learnt, None while it is not known."""
        tracked = self._tracked.get(_wire(flow))
        return tracked.path if tracked else None

    def due(self, now_s: float) -> list[Probe]:
        """Return the probes to send now; each counts as sent."""
        probes = []
        for key, tracked in self._tracked.items():
            if tracked.due_s > now_s:
                continue
            self._forget_number(tracked)
            self._last_number += 1
            tracked.number = self._last_number
            self._by_number[tracked.number] = key
            tracked.due_s = now_s + min(self._retry_s * 2**tracked.tries, self._refresh_s)
            tracked.tries += 1
            probes.append(Probe(tracked.number, next(iter(tracked.flows))))
        return probes

    def asked(self, number: int) -> FiveTuple | None:
        """Return the flow that probe ``number`` was asked for, while it is out."""
        key = self._by_number.get(number)
        return None if key is None else next(iter(self._tracked[key].flows))

    def not_sent(self, number: int, now_s: float) -> FiveTuple | None:
        """Retry probe ``number``, which the agent could not send; return its flow, if known."""
        key = self._by_number.get(number)
        if key is None:
            return None
        tracked = self._tracked[key]
        tracked.due_s = max(tracked.due_s, now_s + self._retry_s)
        return next(iter(tracked.flows))

    def pending(self) -> int:
        """Count the flows whose path is not known."""
        return sum(len(tracked.flows) for tracked in self._tracked.values() if tracked.path is None)

    def sunk(self, report: IntReport, now_s: float) -> Learnt:
        """Take in a sunk probe.

        Raises PathError where its 5-tuple is nobody's, or it tells no path; what was known stays.
        """
        tracked = self._tracked.get(_wire(report.flow))
        if tracked is None:
            raise PathError(f"no known flow {report.flow}")
        path = path_of(report, self._switch_of_node, self._behind)
        changed = path != tracked.path
        tracked.path = path
        tracked.tries = 0
        tracked.due_s = now_s + self._refresh_s
        self._forget_number(tracked)
        return Learnt(tuple(tracked.flows), path, changed)

    def reprobe(self) -> None:
        """Ask for every path again at once: the topology has changed."""
        for tracked in self._tracked.values():
            tracked.due_s = 0.0
            tracked.tries = 0

    def _forget_number(self, tracked: _Tracked) -> None:
        if tracked.number is not None:
            self._by_number.pop(tracked.number, None)
            tracked.number = None


def _wire(flow: FiveTuple) -> FiveTuple:
    """Return ``flow`` as its probe shows it: queue pairs are not hashed by ECMP."""
    return flow._replace(destination_qp=0)
