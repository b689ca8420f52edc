"""Which connections are flows of a job: they leave the host, and a training process has them open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from hostagent.flows.connection import Connection, FiveTuple, Listing
from hostagent.flows.flow import Flow, FlowKind
from hostagent.flows.kind import MIN_BYTES, is_service, kinds

LOOKUPS = 3
"""How often the owner of a new connection is looked for: just accepted, it is in no process's table yet."""

MAX_IGNORED = 1 << 17
"""Cookies of connections that are no flows which are remembered; with more, all are looked at anew."""

MAX_FLOWS = 12_288
"""Most flows of one user on this host: controllers take 16,384 of a host, and there are other users."""

KIND_NS = 1_000_000_000
"""How often the flows' kinds are told anew; and at once when one opens, closes or has carried enough."""


@dataclass(slots=True)
class Sent:
    """What the collectives of a job have sent since the last look, and how long ago the last of it."""

    bytes_sent: int
    quiet_ms: int


@dataclass(slots=True)
class Changes:
    """What one look at the connections brought."""

    opened: list[FiveTuple] = field(default_factory=list)
    changed: list[FiveTuple] = field(default_factory=list)
    closed: list[FiveTuple] = field(default_factory=list)
    sent: dict[str, Sent] = field(default_factory=dict)
    """By job."""


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
        user: Callable[[str], int] = lambda _job: 0,
    ) -> None:
        """``communicator`` says which NCCL communicator a job's flow belongs to; 0: nobody has told.

        ``user`` says whose a job is.
        """
        self._user = user
        self._of_user: Counter[int] = Counter()
        self.crowded: set[int] = set()
        """Users who have more flows than are taken."""
        self._addresses = frozenset(addresses)
        self._communicator = communicator
        self.flows: dict[FiveTuple, Flow] = {}
        self.known: dict[int, FiveTuple] = {}
        """The flows' 5-tuples by their sockets' cookies."""
        self.brief: dict[str, Brief] = {}
        """Per job, connections to its peers that were gone before they were listed."""
        self._of_job: dict[str, dict[FiveTuple, Flow]] = {}
        self._kinds_ns = 0
        self._moved: set[str] = set()  # jobs whose flows may be of other kinds than they were told
        self._told_anew = False  # other things are known of the communicators
        self._shared: frozenset[tuple[bytes, int]] = frozenset()  # endpoints that several jobs use
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
        """Have the flows' kinds told anew: other things are known of their communicators."""
        self._kinds_ns, self._told_anew = 0, True
        self._moved.update(self._of_job)

    def update(
        self, listing: Listing, owners: Callable[[], Mapping[int, str] | None], now_ns: int
    ) -> Changes:
        """Take in the connections of now, listed with `ignored` and `known` as they are.

        ``owners`` is called at most once, and only when a connection is new: it maps socket inodes to jobs,
        or returns None where it is too early to look again.
        """
        if len(self._ignored) > MAX_IGNORED:  # some are gone without our being told
            self._ignored.clear()
        changes = Changes()
        gone = self.known.keys() - listing.present
        strangers: dict[int, int] = {}
        unknown: list[Connection] = []
        enough = False
        for connection in listing.connections:
            if (key := self.known.get(connection.cookie)) is not None:
                enough |= self._see(key, connection, changes, now_ns)
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
            if self._of_user[user := self._user(job)] >= MAX_FLOWS:
                self.crowded.add(user)
                self._ignored.add(connection.cookie)
                continue
            self._open(job, user, connection, now_ns)
            changes.opened.append(connection.tuple)
        self._lookups = strangers
        changes.closed = [self.known[cookie] for cookie in gone if cookie in self.known]
        for key in changes.closed:
            self._forget(key)
        if changes.opened or changes.closed:
            self._find_shared()
        if enough or ((changes.opened or changes.closed) and self._moved) or self._is_due(now_ns):
            self._tell_kinds(changes, now_ns)
        return changes

    def refresh(self, connections: Iterable[Connection], now_ns: int) -> Changes:
        """Take in some connections that are flows already, as they are now."""
        changes, enough = Changes(), False
        for connection in connections:
            if (key := self.known.get(connection.cookie)) is not None:
                enough |= self._see(key, connection, changes, now_ns)
        if enough or self._is_due(now_ns):
            self._tell_kinds(changes, now_ns)
        return changes

    def _see(self, key: FiveTuple, connection: Connection, changes: Changes, now_ns: int) -> bool:
        """Take in a flow's connection; say whether it has just carried enough to tell its kind."""
        flow, total = self.flows[key], connection.bytes_sent + connection.bytes_received
        before = flow.carried
        if before == total:
            return False
        self._moved.add(flow.job)
        flow.carry(total, now_ns)
        if more := connection.bytes_sent - flow.bytes_sent:
            flow.bytes_sent = connection.bytes_sent
            changes.changed.append(key)
            if flow.kind is FlowKind.COLLECTIVE:
                sent = changes.sent.setdefault(flow.job, Sent(0, connection.quiet_ms))
                sent.bytes_sent += more
                sent.quiet_ms = min(sent.quiet_ms, connection.quiet_ms)
        return before < MIN_BYTES <= total

    def _is_due(self, now_ns: int) -> bool:
        return bool(self._moved) and now_ns - self._kinds_ns >= KIND_NS

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

    def _open(self, job: str, user: int, connection: Connection, now_ns: int) -> None:
        if connection.tuple in self.flows:  # the 5-tuple's next use
            self._forget(connection.tuple)
        flow = Flow(
            job,
            connection.cookie,
            now_ns,
            connection.bytes_sent,
            user,
            service=is_service(connection.tuple),
            communicator=self._communicator(job, connection.tuple),
        )
        flow.carry(connection.bytes_sent + connection.bytes_received, now_ns)
        if flow.carried or flow.communicator:
            self._moved.add(job)
        self.flows[connection.tuple] = flow
        self._of_user[user] += 1
        self.known[connection.cookie] = connection.tuple
        self._of_job.setdefault(job, {})[connection.tuple] = flow

    def _forget(self, key: FiveTuple) -> None:
        flow = self.flows.pop(key)
        self._of_user[flow.user] -= 1
        del self.known[flow.cookie]
        if not flow.destroyed:
            self._ignored.add(flow.cookie)  # it closes, and its destruction is still to be told
        del self._of_job[flow.job][key]
        if flow.carried:
            self._moved.add(flow.job)  # it may have been the busiest
        if not self._of_job[flow.job]:
            del self._of_job[flow.job]
            self.brief.pop(flow.job, None)

    def _find_shared(self) -> None:
        """Find the addresses and ports that several jobs are connected to."""
        users: Counter[tuple[bytes, int]] = Counter()
        if len(self._of_job) > 1:
            for flows in self._of_job.values():
                users.update({(key.destination, key.destination_port) for key in flows})
        shared = frozenset(endpoint for endpoint, jobs in users.items() if jobs > 1)
        if shared != self._shared:
            self._shared = shared
            self._moved.update(self._of_job)

    def _tell_kinds(self, changes: Changes, now_ns: int) -> None:
        moved, self._moved, self._kinds_ns = self._moved & self._of_job.keys(), set(), now_ns
        others: list[FiveTuple] = []
        for flows in (self._of_job[job] for job in moved):
            others += self._other_communicators(flows) if self._told_anew else ()
            for key, kind in list(kinds(flows, self._shared)):
                flows[key].kind = kind
                others.append(key)
        self._told_anew = False
        if others:
            told = {*changes.opened, *changes.changed}
            changes.changed += [key for key in dict.fromkeys(others) if key not in told]

    def _other_communicators(self, flows: Mapping[FiveTuple, Flow]) -> Iterable[FiveTuple]:
        """Ask for the communicators of ``flows`` again; yield those that have others now."""
        for key, flow in flows.items():
            communicator = self._communicator(flow.job, key)
            if communicator != flow.communicator:
                flow.communicator = communicator
                yield key

    def _leaves(self, flow: FiveTuple) -> bool:
        return (
            flow.source in self._addresses
            and flow.destination not in self._addresses
            and not ip_address(flow.destination).is_loopback
        )
