"""Looking at the host: processes, logs and connections, each as often as it is worth, into the state."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import structlog

from hostagent.config import AgentSection
from hostagent.flows.activity import TcpActivity
from hostagent.flows.inet_diag import InetDiag
from hostagent.flows.tracker import Changes, FlowTracker
from hostagent.interface import DataPort
from hostagent.jobs.processes import ProcessFinder, own_network_namespace, sees_everyone
from hostagent.jobs.tracker import JobTracker
from hostagent.logs.watch import Watcher
from hostagent.pacing import Pacer
from hostagent.state import HostState

SHARE = 0.01
"""Of a core, at most, for each kind of looking: lists of processes, of open files, of connections."""

NS_PER_MS = 1_000_000

LIVELY_NS = 1_000 * NS_PER_MS
"""How long after the last change of any flow the connections are listed each time."""

IDLE_NS = 1_000 * NS_PER_MS
"""How often they are listed when nothing has changed for longer: a connection that idles may send again."""


class Observer:
    """Keeps ``state`` up to date with the host. Close it when done."""

    def __init__(self, config: AgentSection, port: DataPort, state: HostState) -> None:
        """Open what observing needs. Raises OSError without inet_diag or a proc at ``config.proc``."""
        proc = str(config.proc)
        namespace = own_network_namespace(proc) if config.network_namespace == "own" else None
        self._processes = ProcessFinder(proc, config.host, namespace)
        self.watcher = Watcher()
        """Its descriptor is readable when a log has grown."""
        self._jobs = JobTracker(proc, self.watcher)
        self._poll_ns = config.poll_ms * NS_PER_MS
        self._read_ns = sys.maxsize
        self._flows = FlowTracker(port.addresses)
        self._diag = InetDiag()
        self._state = state
        self._scan_pace = Pacer(config.scan_ms * NS_PER_MS, SHARE)
        self._activity = TcpActivity(proc)
        self._lively_until_ns = 0  # as long as connections come and go, or bytes, they are listed each time
        self._list_ns = 0
        self._flow_pace = Pacer(config.flows_ms * NS_PER_MS, SHARE)
        self._search_pace = Pacer(0, SHARE, burst_ns=LIVELY_NS)
        self._log = structlog.get_logger()
        self._said_denied = False

    def close(self) -> None:
        """Close every file and socket."""
        self._diag.close()
        self._activity.close()
        for job in self._jobs.update(()):
            self._log.debug("log closed", job=job.id)
        self.watcher.close()

    @property
    def due_ns(self) -> int:
        """Monotonic time at which to look again, if no log grows before."""
        return min(self._scan_pace.due_ns, self._flow_pace.due_ns, self._read_ns)

    def look(self, now_ns: int) -> None:
        """Look at whatever is due at ``now_ns``, and at logs that have grown.

        Raises OSError when the kernel refuses.
        """
        scans = self._scan_pace.due(now_ns)
        if scans:
            with self._scan_pace.run(now_ns):
                self._scan(now_ns)
        # Drained before reading: what is written from here on is told again.
        if self.watcher.drain() or scans or now_ns >= self._read_ns:
            self._read_logs(now_ns)
        if self._flow_pace.due(now_ns):
            with self._flow_pace.run(now_ns):
                self._look_at_flows(now_ns)

    def _read_logs(self, now_ns: int) -> None:
        for progress in self._jobs.read(now_ns):
            self._state.job_changed(progress.job, progress.durations_ns)
        behind = any(job.behind for job in self._jobs.jobs.values())
        self._read_ns = now_ns + self._poll_ns if behind else sys.maxsize

    def _look_at_flows(self, now_ns: int) -> None:
        if self._activity.changed():
            self._lively_until_ns = now_ns + LIVELY_NS
        if now_ns > self._lively_until_ns and now_ns < self._list_ns:
            return
        self._list_ns = now_ns + IDLE_NS
        changes = self._flows.update(self._diag.connections(), lambda: self._find_owners(now_ns), now_ns)
        if changes != Changes():
            self._lively_until_ns = now_ns + LIVELY_NS
            self._state.flows_changed(changes, self._flows.flows)

    def _scan(self, now_ns: int) -> None:
        changed = self._processes.scan(now_ns)
        known = set(self._jobs.jobs)
        for job in self._jobs.update(self._processes.processes.values()):
            self._state.job_changed(job, ended=True)
            self._log.info(
                "job ended", job=job.id, iterations=job.counter.iterations, rejected=dict(job.rejected())
            )
        if changed:
            self._read_ns = now_ns  # there may be new logs
            self._flows.forget_strangers()
            for job in self._jobs.jobs.values():
                self._state.job_changed(job)
                if job.id not in known:
                    self._log.info(
                        "job found", job=job.id, world_size=job.world_size, ranks_here=job.local_ranks
                    )
        if self._processes.denied and not self._said_denied and not sees_everyone():
            self._said_denied = True
            self._log.warning(
                "some processes cannot be read, their jobs will not be seen",
                mend="run as root, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
            )

    def _find_owners(self, now_ns: int) -> Mapping[int, str] | None:
        """Find whose the new connections are: a new process may be, so look for those first."""
        if not self._search_pace.due(now_ns):
            return None
        with self._search_pace.run(now_ns):
            self._scan(now_ns)
            return self._processes.socket_owners()
