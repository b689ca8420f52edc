"""Looking at the host: processes, logs and connections, each as often as it is worth, into the state."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Mapping
from ipaddress import ip_address

import structlog

from hostagent.config import AgentSection
from hostagent.flows.namespaces import Namespaces
from hostagent.flows.rdma import JobQueuePair, QueuePairs
from hostagent.flows.tracker import Changes, FlowTracker
from hostagent.interface import DataPort
from hostagent.jobs.health import Health, Patience
from hostagent.jobs.processes import ProcessFinder, own_network_namespace, sees_everyone
from hostagent.jobs.reports import ReportSocket
from hostagent.jobs.tracker import JobTracker
from hostagent.logs import FORMATS
from hostagent.logs.custom import custom
from hostagent.logs.watch import Watcher
from hostagent.memory import Memory
from hostagent.nccl.communicators import Communicators
from hostagent.nccl.messages import Connection, End
from hostagent.nccl.receiver import Receiver
from hostagent.pacing import Pacer
from hostagent.state import HostState
from hostagent.timing_recorder import Timings
from leveller.errors import UserError

SHARE = 0.01
"""Of a core, at most, for each kind of looking: lists of processes, of open files .."""

FLOWS_SHARE = 0.015
""".. and of connections, nearly all of which is the kernel's work: 10,000 are listed once a second."""

NS_PER_MS = 1_000_000

LIVELY_NS = 1_000 * NS_PER_MS
"""How long after the last connection that opened or closed the connections are listed each time."""

IDLE_NS = 5_000 * NS_PER_MS
"""How often they are listed when none has: only the flows are looked at in between, each by itself."""

KEEP_NS = 2_000 * NS_PER_MS
"""How often what is known is kept: all that comes later is in the logs, unless they are truncated, too."""

READ_SHARE = 0.25
"""Of a core, at most, for reading logs whose lines take long .."""

DEAR_NS = 20 * NS_PER_MS
""".. which is so long at a time."""

SEARCH_BURST_NS = 30_000 * NS_PER_MS
"""So long without a search for logs the next one's steps make up for: a new job's is to be found soon."""

MAX_ADDRESSES = 64
"""Most addresses that controllers let one host speak for."""

MAX_LOOKUPS = 256
"""With more flows than that, listing all connections is cheaper."""


class Observer:
    """Keeps ``state`` up to date with the host. Close it when done."""

    def __init__(
        self,
        config: AgentSection,
        port: DataPort,
        state: HostState,
        on_addresses: Callable[[tuple[bytes, ...]], None] = lambda _: None,
    ) -> None:
        """Open what observing needs. Raises OSError without inet_diag or a proc at ``config.proc``.

        What is known of jobs goes on where an agent before this one has kept it in ``config.state_file``.

        ``on_addresses`` is told the addresses to speak for when they are others than ``port``'s: containers
        with addresses of their own have come or gone.
        """
        proc = str(config.proc)
        own = own_network_namespace(proc)
        alone = config.network_namespace == "own" or (
            config.network_namespace == "auto" and not _is_hosts(own, proc)
        )
        namespace = own if alone else None
        self._port = port
        self._on_addresses = on_addresses
        self._networks = (*port.networks, *config.container_networks)
        self._unrouted: frozenset[bytes] = frozenset()
        self._processes = ProcessFinder(proc, config.host, namespace)
        self._watcher = Watcher()
        self._reports = _listen(config.report_socket)
        self._ready = select.epoll()
        for source in (self._watcher, self._reports):
            if source is not None:
                self._ready.register(source, select.EPOLLIN)
        self._memory = Memory(config.state_file, proc) if config.state_file is not None else None
        self._keep_pace = Pacer(KEEP_NS, SHARE, cpu_ns=self._cpu_ns)
        self._jobs = JobTracker(
            proc,
            self._watcher,
            (*(custom(section.name, section.pattern) for section in config.formats), *FORMATS),
            config.logs,
            Patience(config.hung_after, int(config.hung_min_s * 1e9)),
            self._memory.recall() if self._memory is not None else (),
        )
        self._poll_ns = config.poll_ms * NS_PER_MS
        self._read_ns = sys.maxsize
        self._rested_ns = 0  # no log is read before: the last time took long
        self._communicators = Communicators()
        self._flows = FlowTracker(port.addresses, self._communicators.of_socket, self._processes.user_of)
        self._queue_pairs = QueuePairs(config.rdma_command, config.rdma_devices)
        self._paired: list[JobQueuePair] = []
        self._namespaces = Namespaces(proc)
        self._said_overflow = False
        self._timings = Timings()
        self._state = state
        self._scan_pace = Pacer(config.scan_ms * NS_PER_MS, SHARE, cpu_ns=self._cpu_ns)
        self._lively_until_ns = 0  # as long as connections come and go, or bytes, they are listed each time
        self._list_ns = 0
        self._flow_pace = Pacer(config.flows_ms * NS_PER_MS, FLOWS_SHARE)
        self._search_pace = Pacer(0, SHARE, burst_ns=LIVELY_NS)
        self._log_pace = Pacer(0, SHARE, SEARCH_BURST_NS, self._cpu_ns)
        self._log = structlog.get_logger()
        self._said_denied = False
        self._crowded: set[int] = set()

    def close(self) -> None:
        """Keep what is known, and close every file and socket."""
        if self._memory is not None:
            self._memory.keep(self._jobs.remember())
        self._namespaces.close()
        self._queue_pairs.close()
        self._jobs.close()
        self._ready.close()
        self._watcher.close()
        if self._reports is not None:
            self._reports.close()

    def fileno(self) -> int:
        """Return a descriptor that is readable when a log has grown, or training code tells how far it is."""
        return self._ready.fileno()

    @property
    def due_ns(self) -> int:
        """Monotonic time at which to look again, if no log grows before."""
        return min(self._scan_pace.due_ns, self._flow_pace.due_ns, max(self._read_ns, self._rested_ns))

    def look(self, now_ns: int) -> None:
        """Look at whatever is due at ``now_ns``, and at logs that have grown.

        Raises OSError when the kernel refuses, and UserError when the interface is no more.
        """
        scans = self._scan_pace.due(now_ns)
        if scans:
            if not self._port.is_there():
                raise UserError(
                    f"agent.interface: {self._port.name} is gone (deleted, renamed or made anew)",
                    "start the agent again when it is there",
                )
            with self._scan_pace.run(now_ns):
                self._scan(now_ns)
            self._search_logs(now_ns)
        # Drained before reading: what is written from here on is told again.
        if self._watcher.drain() | self._hear() or scans:
            self._read_ns = min(self._read_ns, now_ns)
        if now_ns >= max(self._read_ns, self._rested_ns):
            self._read_logs(now_ns)
        if scans:
            self._check(now_ns)
            if self._memory is not None and self._keep_pace.due(now_ns):
                with self._keep_pace.run(now_ns):
                    self._memory.keep(self._jobs.remember())
        if self._flow_pace.due(now_ns):
            with self._flow_pace.run(now_ns):
                self._look_at_flows(now_ns)
                self._look_at_queue_pairs(now_ns)
        for job, timing in self._timings.measured(now_ns).items():
            self._state.timing_changed(job, timing)

    def _hear(self) -> bool:
        """Take in what training code tells of its progress; say whether there was anything."""
        words = self._reports.read() if self._reports is not None else []
        for word in words:
            self._jobs.tell(word.pid, word.first, word.now)
        return bool(words)

    def _cpu_ns(self) -> int:
        """Return the CPU time that looking has taken, in whatever thread."""
        return time.thread_time_ns() + self._jobs.cpu_ns

    def _read_logs(self, now_ns: int) -> None:
        begun_ns = self._cpu_ns()
        for progress in self._jobs.read(now_ns):
            self._state.job_changed(progress.job, progress.durations_ns)
            self._timings.completed(progress.job.id, progress.job.counter.last_ns, progress.durations_ns)
        cost_ns = self._cpu_ns() - begun_ns
        self._rested_ns = now_ns + int(cost_ns / READ_SHARE) if cost_ns > DEAR_NS else 0
        self._read_ns = now_ns + self._poll_ns if self._jobs.behind else sys.maxsize

    def _look_at_flows(self, now_ns: int) -> None:
        if self._namespaces.changed():
            self._lively_until_ns = now_ns + LIVELY_NS
        known = self._flows.known
        if now_ns > self._lively_until_ns and now_ns < self._list_ns and len(known) <= MAX_LOOKUPS:
            found = self._namespaces.lookup(known)
            if len(found) < len(known):
                self._list_ns = now_ns
            self._flows_changed(self._flows.refresh(found, now_ns), now_ns)
            return
        self._list_ns = now_ns + IDLE_NS
        self._flows.destroyed(self._namespaces.destroyed())
        if self._namespaces.overflows and not self._said_overflow:
            self._said_overflow = True
            self._log.warning("connections come and go faster than brief ones can be counted")
        listing = self._namespaces.connections(self._flows.ignored, known)
        changes = self._flows.update(listing, lambda: self._find_owners(now_ns), now_ns)
        if changes.opened or changes.closed:
            self._lively_until_ns = now_ns + LIVELY_NS
        self._flows_changed(changes, now_ns)
        for job, brief in self._flows.brief.items():
            self._state.brief_changed(job, brief)

    def _flows_changed(self, changes: Changes, now_ns: int) -> None:
        self._timings.looked(changes.sent, now_ns)
        self._state.flows_changed(changes, self._flows.flows)

    def _scan(self, now_ns: int) -> None:
        changed = self._processes.scan(now_ns)
        known = set(self._jobs.jobs)
        for job in self._jobs.update(self._processes.processes.values()):
            self._state.job_changed(job, ended=True)
            self._log.info(
                f"job {job.health.value}",
                job=job.id,
                why=job.reason,
                iterations=job.counter.iterations,
                rejected=dict(job.rejected()),
                nccl_lost=self._communicators.lost(job.id),
            )
        if changed:
            self._read_ns = now_ns  # there may be new logs
            self._flows.forget_strangers()
            self._timings.keep(self._jobs.jobs)
            self._communicators.keep(self._jobs.jobs)
            for job in self._jobs.jobs.values():
                self._state.job_changed(job)
                if job.id not in known:
                    self._log.info(
                        "job found", job=job.id, world_size=job.world_size, ranks_here=job.local_ranks
                    )
        users = {pid: process.user for pid, process in self._processes.processes.items()}
        # A process may enter another namespace after it has been found (`ip netns exec`, container runtimes).
        if self._namespaces.follow(users):
            self._speak_for_containers()
        if crowded := (self._processes.crowded | self._flows.crowded) - self._crowded:
            self._crowded |= crowded
            self._log.warning(
                "users have more jobs or flows than one may, the rest are not reported",
                users=",".join(map(str, sorted(crowded))),
            )
        if self._processes.denied and not self._said_denied and not sees_everyone():
            self._said_denied = True
            self._log.warning(
                "some processes cannot be read, their jobs will not be seen",
                mend="run as root, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
            )

    def _check(self, now_ns: int) -> None:
        """Say which jobs hang, by what has been read just now: the agent may have stood still itself."""
        for job in self._jobs.check(now_ns):
            self._state.job_changed(job)
            say = self._log.warning if job.health is Health.HUNG else self._log.info
            say(f"job {job.health.value}", job=job.id, why=job.reason or "it shows iterations again")

    def _search_logs(self, now_ns: int) -> None:
        """Search for the logs of jobs that show no iteration."""
        if not self._log_pace.due(now_ns):
            return
        before = {name: job.source for name, job in self._jobs.jobs.items()}
        with self._log_pace.run(now_ns):
            if not self._jobs.search(now_ns):
                return
        for name, job in self._jobs.jobs.items():
            if job.source != before[name]:
                self._read_ns = now_ns
                self._state.job_changed(job)
                self._log.info("log found", job=name, source=job.source)

    def listen(self, receiver: Receiver) -> None:
        """Take in what NCCL's plugins have told ``receiver``."""
        for told in receiver.drain(self._processes.processes):
            self._communicators.see(told.pid, told.job, told.message)
            if isinstance(told.message, Connection | End):
                self._flows.retell()

    def _look_at_queue_pairs(self, now_ns: int) -> None:
        self._queue_pairs.look(now_ns)
        jobs = {pid: process.rank.job for pid, process in self._processes.processes.items()}
        paired = self._queue_pairs.of_jobs(jobs, self._flows.addresses, self._communicators.of_queue_pair)
        if paired != self._paired:
            self._paired = paired
            self._state.queue_pairs_changed(paired)
        for job, communicators in self._communicators.changed().items():
            self._state.communicators_changed(job, communicators)

    def _speak_for_containers(self) -> None:
        """Take the addresses of jobs' own namespaces for the host's where the fabric routes them."""
        foreign = self._namespaces.foreign_addresses
        routed = [address for address in foreign if any(ip_address(address) in net for net in self._networks)]
        spoken_for = [address for address in routed if address not in self._port.addresses]
        most = MAX_ADDRESSES - len(self._port.addresses)
        addresses = (*self._port.addresses, *sorted(spoken_for[: max(0, most)]))
        if frozenset(addresses) != self._flows.addresses:
            self._flows.speak_for(addresses)
            self._on_addresses(addresses)
        if unrouted := frozenset(foreign) - frozenset(addresses) - self._unrouted:
            self._log.warning(
                "flows from containers' addresses are not reported",
                addresses=",".join(sorted(str(ip_address(address)) for address in unrouted)),
                mend="if the fabric routes them as they are, name their network in agent.container_networks",
            )
        self._unrouted = frozenset(foreign) - frozenset(addresses)

    def _find_owners(self, now_ns: int) -> Mapping[int, str] | None:
        """Find whose the new connections are: a new process may be, so look for those first."""
        if not self._search_pace.due(now_ns):
            return None
        with self._search_pace.run(now_ns):
            self._scan(now_ns)
            return self._processes.socket_owners()


def _listen(path: str) -> ReportSocket | None:
    """Listen to training code; None where another does, or the path cannot be used."""
    try:
        return ReportSocket(path)
    except OSError as error:
        structlog.get_logger().warning(
            "training code cannot tell of its progress here, only its logs are read", reason=str(error)
        )
        return None


def _is_hosts(namespace: str, proc: str) -> bool:
    """Say whether ``namespace`` is process 1's, which is the host's own."""
    try:
        return os.readlink(f"{proc}/1/ns/net") == namespace
    except OSError:
        return False
