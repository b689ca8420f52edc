"""Which connections are flows of a job: they leave the host, and a training process has them open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from hostagent.flows.connection import Connection, FiveTuple
from hostagent.flows.kind import MIN_BYTES, FlowKind, Volume, kinds

LOOKUPS = 3
"""How often the owner of a new connection is looked for: just accepted, it is in no process's table yet."""

MAX_IGNORED = 1 << 17
"""Cookies of connections that are no flows which are remembered; with more, all are looked at anew."""

KIND_NS = 1_000_000_000
"""How often the flows' kinds are told anew; and at once when one opens, closes or has carried enough."""


@dataclass(slots=True)
class Flow:
    """A flow of job ``job``; ``opened_ns`` is when it was first seen (monotonic)."""

    job: str
    cookie: int
    opened_ns: int
    bytes_sent: int
    kind: FlowKind = FlowKind.CONTROL
    quiet_ms: int = 0
    """Time since it last sent payload, when it was last looked at."""
    communicator: int = 0
    """NCCL communicator that it belongs to; 0: not known."""
    destroyed: bool = False
    """Its socket is no more, though the connections have not been listed since."""
    volume: Volume = field(default_factory=lambda: Volume(0, 0))
    """Of both directions."""


@dataclass(slots=True)
class Changes:
    """What one look at the connections brought."""

    opened: list[FiveTuple] = field(default_factory=list)
    changed: list[FiveTuple] = field(default_factory=list)
    closed: list[FiveTuple] = field(default_factory=list)


@dataclass(slots=True)
class Brief:
    """Connections of one job that came and went between two looks."""

    count: int = 0
    bytes_sent: int = 0


class FlowTracker:
    """Keeps the flows of this host's jobs.

    ``addresses`` are the host's own data addresses: a flow goes from one of them to an address that is
    neither among them nor a loopback one.
    """

    def __init__(
        self,
        addresses: Collection[bytes],
        communicator: Callable[[str, FiveTuple], int] = lambda _job, _flow: 0,
    ) -> None:
        """``communicator`` says which NCCL communicator a job's flow belongs to; 0: nobody has told."""
        self._addresses = frozenset(addresses)
        self._communicator = communicator
        self.flows: dict[FiveTuple, Flow] = {}
        self.known: dict[int, FiveTuple] = {}
        """The flows' 5-tuples by their sockets' cookies."""
        self.brief: dict[str, Brief] = {}
        """Per job, connections to its peers that were gone before they were listed."""
        self._of_job: dict[str, dict[FiveTuple, Flow]] = {}
        self._kinds_ns = 0
        self._moved = False  # something has been carried since the kinds were told
        self._lookups: dict[int, int] = {}  # cookie of a connection without known owner -> lookups so far
        self._ignored: set[int] = set()  # cookies of connections that are no flow

    @property
    def ignored(self) -> Collection[int]:
        """Cookies of connections that are known to be no flows: they need not be listed."""
        return self._ignored

    @property
    def addresses(self) -> frozenset[bytes]:
        """The addresses that flows may come from."""
        return self._addresses

    def speak_for(self, addresses: Collection[bytes]) -> None:
        """Take ``addresses`` for the host's own from now on, and no others."""
        self._addresses = frozenset(addresses)
        self.forget_strangers()

    def forget_strangers(self) -> None:
        """Look again for the owners of all connections: there are other training processes now."""
        self._lookups.clear()
        self._ignored.clear()

    def retell(self) -> None:
        """Have the flows' kinds told anew: more is known of their communicators."""
        self._kinds_ns, self._moved = 0, True

    def update(
        self,
        connections: Iterable[Connection],
        owners: Callable[[], Mapping[int, str] | None],
        now_ns: int,
    ) -> Changes:
        """Take in all connections of now, but for those that are ignored.

        ``owners`` is called at most once, and only when a connection is new: it maps socket inodes to jobs,
        or returns None where it is too early to look again.
        """
        if len(self._ignored) > MAX_IGNORED:  # some are gone without our being told
            self._ignored.clear()
        changes = Changes()
        seen: set[int] = set()
        strangers: dict[int, int] = {}
        unknown: list[Connection] = []
        enough = False
        for connection in connections:
            if (key := self.known.get(connection.cookie)) is not None:
                seen.add(connection.cookie)
                enough |= self._see(key, connection, changes)
            elif connection.cookie in self._ignored:
                continue
            elif not self._leaves(connection.tuple):
                self._ignored.add(connection.cookie)
            elif connection.inode:
                strangers[connection.cookie] = self._lookups.get(connection.cookie, 0)
                unknown.append(connection)
        known = owners() if unknown else None
        for connection in unknown if known is not None else ():
            assert known is not None
            if (job := known.get(connection.inode)) is None:
                strangers[connection.cookie] += 1
                if strangers[connection.cookie] >= LOOKUPS:
                    del strangers[connection.cookie]
                    self._ignored.add(connection.cookie)
                continue
            del strangers[connection.cookie]
            seen.add(connection.cookie)
            self._open(job, connection, now_ns)
            changes.opened.append(connection.tuple)
        self._lookups = strangers
        changes.closed = [key for cookie, key in self.known.items() if cookie not in seen]
        for key in changes.closed:
            self._forget(key)
        if enough or changes.opened or changes.closed or self._is_due(now_ns):
            self._tell_kinds(changes, now_ns)
        return changes

    def refresh(self, connections: Iterable[Connection], now_ns: int) -> Changes:
        """Take in some connections that are flows already, as they are now."""
        changes, enough = Changes(), False
        for connection in connections:
            if (key := self.known.get(connection.cookie)) is not None:
                enough |= self._see(key, connection, changes)
        if enough or self._is_due(now_ns):
            self._tell_kinds(changes, now_ns)
        return changes

    def _see(self, key: FiveTuple, connection: Connection, changes: Changes) -> bool:
        """Take in a flow's connection; say whether it has just carried enough to tell its kind."""
        flow, total = self.flows[key], connection.bytes_sent + connection.bytes_received
        flow.quiet_ms = connection.quiet_ms
        before = flow.volume.total
        if before == total:
            return False
        self._moved = True
        flow.volume.total = total
        if flow.bytes_sent != connection.bytes_sent:
            flow.bytes_sent = connection.bytes_sent
            changes.changed.append(key)
        return before < MIN_BYTES <= total

    def _is_due(self, now_ns: int) -> bool:
        return self._moved and now_ns - self._kinds_ns >= KIND_NS

    def destroyed(self, connections: Iterable[Connection]) -> None:
        """Take in sockets that were destroyed: those that were never listed are counted.

        Nobody can tell whose they were; one to an address that flows of one job only go to is taken for that
        job's.
        """
        peers: dict[bytes, set[str]] | None = None
        for connection in connections:
            cookie, key = connection.cookie, connection.tuple
            if cookie in self._ignored:
                self._ignored.discard(cookie)
                continue
            if cookie in self.known:
                self.flows[self.known[cookie]].destroyed = True
                continue
            if cookie in self._lookups or not self._leaves(key):
                continue
            if peers is None:
                peers = {}
                for other, known in self.flows.items():
                    peers.setdefault(other.destination, set()).add(known.job)
            jobs = peers.get(key.destination, set())
            if len(jobs) == 1:
                brief = self.brief.setdefault(next(iter(jobs)), Brief())
                brief.count += 1
                brief.bytes_sent += connection.bytes_sent

    def _open(self, job: str, connection: Connection, now_ns: int) -> None:
        if connection.tuple in self.flows:  # the 5-tuple's next use
            self._forget(connection.tuple)
        flow = Flow(
            job,
            connection.cookie,
            now_ns,
            connection.bytes_sent,
            quiet_ms=connection.quiet_ms,
            volume=Volume(connection.bytes_sent + connection.bytes_received, now_ns),
        )
        self.flows[connection.tuple] = flow
        self.known[connection.cookie] = connection.tuple
        self._of_job.setdefault(job, {})[connection.tuple] = flow

    def _forget(self, key: FiveTuple) -> None:
        flow = self.flows.pop(key)
        del self.known[flow.cookie]
        if not flow.destroyed:
            self._ignored.add(flow.cookie)  # it closes, and its destruction is still to be told
        del self._of_job[flow.job][key]
        if not self._of_job[flow.job]:
            del self._of_job[flow.job]
            self.brief.pop(flow.job, None)

    def _tell_kinds(self, changes: Changes, now_ns: int) -> None:
        self._kinds_ns, self._moved = now_ns, False
        users: Counter[tuple[bytes, int]] = Counter()
        for flows in self._of_job.values():
            users.update({(key.destination, key.destination_port) for key in flows})
        shared = frozenset(endpoint for endpoint, jobs in users.items() if jobs > 1)
        told = {*changes.opened, *changes.changed}
        for job, flows in self._of_job.items():
            volumes = {key: flow.volume for key, flow in flows.items()}
            before = {key: flow.kind for key, flow in flows.items()}
            for key, kind in kinds(volumes, before, shared, now_ns).items():
                flow, communicator = flows[key], self._communicator(job, key)
                if communicator:
                    kind = FlowKind.COLLECTIVE
                if (kind, communicator) != (flow.kind, flow.communicator):
                    flow.kind, flow.communicator = kind, communicator
                    if key not in told:
                        changes.changed.append(key)

    def _leaves(self, flow: FiveTuple) -> bool:
        return (
            flow.source in self._addresses
            and flow.destination not in self._addresses
            and not ip_address(flow.destination).is_loopback
        )
