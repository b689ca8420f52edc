"""Which connections are flows of a job: they leave the host, and a training process has them open."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from hostagent.flows.connection import Connection, FiveTuple

LOOKUPS = 3
"""How often the owner of a new connection is looked for: just accepted, it is in no process's table yet."""


@dataclass(slots=True)
class Flow:
    """A flow of job ``job``; ``opened_ns`` is when it was first seen (monotonic)."""

    job: str
    cookie: int
    opened_ns: int
    bytes_sent: int


@dataclass(slots=True)
class Changes:
    """What one look at the connections brought."""

    opened: list[FiveTuple] = field(default_factory=list)
    changed: list[FiveTuple] = field(default_factory=list)
    closed: list[FiveTuple] = field(default_factory=list)


class FlowTracker:
    """Keeps the flows of this host's jobs.

    ``addresses`` are the host's own data addresses: a flow goes from one of them to an address that is
    neither among them nor a loopback one.
    """

    def __init__(self, addresses: Collection[bytes]) -> None:
        self._addresses = frozenset(addresses)
        self.flows: dict[FiveTuple, Flow] = {}
        self._lookups: dict[int, int] = {}  # cookie of a connection without known owner -> lookups so far

    def forget_strangers(self) -> None:
        """Look again for the owners of all connections: there are other training processes now."""
        self._lookups.clear()

    def update(
        self,
        connections: Iterable[Connection],
        owners: Callable[[], Mapping[int, str] | None],
        now_ns: int,
    ) -> Changes:
        """Take in all connections of now.

        ``owners`` is called at most once, and only when a connection is new: it maps socket inodes to jobs,
        or returns None where it is too early to look again.
        """
        changes = Changes()
        seen: set[FiveTuple] = set()
        strangers: dict[int, int] = {}
        unknown: list[Connection] = []
        for connection in connections:
            flow = self.flows.get(connection.tuple)
            if flow is not None and flow.cookie == connection.cookie:
                seen.add(connection.tuple)
                if flow.bytes_sent != connection.bytes_sent:
                    flow.bytes_sent = connection.bytes_sent
                    changes.changed.append(connection.tuple)
            elif connection.inode and self._leaves(connection.tuple):
                strangers[connection.cookie] = self._lookups.get(connection.cookie, 0)
                if strangers[connection.cookie] < LOOKUPS:
                    unknown.append(connection)
        known = owners() if unknown else None
        for connection in unknown if known is not None else ():
            assert known is not None
            if (job := known.get(connection.inode)) is None:
                strangers[connection.cookie] += 1
                continue
            del strangers[connection.cookie]
            seen.add(connection.tuple)
            self.flows[connection.tuple] = Flow(job, connection.cookie, now_ns, connection.bytes_sent)
            changes.opened.append(connection.tuple)
        self._lookups = strangers
        changes.closed = [tuple_ for tuple_ in self.flows if tuple_ not in seen]
        for tuple_ in changes.closed:
            del self.flows[tuple_]
        return changes

    def _leaves(self, flow: FiveTuple) -> bool:
        return (
            flow.source in self._addresses
            and flow.destination not in self._addresses
            and not ip_address(flow.destination).is_loopback
        )
