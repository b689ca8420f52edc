"""What this host knows, and the Reports that carry it.

Every change gets the next *version*. A stream to a controller remembers only the version up to which it has
reported, so a slow or absent controller costs nothing: when it reads again, everything since is merged into
one Report. What is gone (a closed flow, an ended job) is remembered for a while and then forgotten; a stream
that was away for longer gets a full Report.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Protocol, TypeVar

from leveller_proto import agent_pb2 as pb

from hostagent.flows.connection import FiveTuple
from hostagent.flows.flow import Flow, FlowKind
from hostagent.flows.rdma import JobQueuePair
from hostagent.flows.tracker import Brief, Changes
from hostagent.jobs.health import Health
from hostagent.jobs.job import TrackedJob
from hostagent.logs.counter import IterationCounter
from hostagent.nccl.communicators import JobCommunicator
from hostagent.timing import Timing

KEEP_CLOSED = 4096
"""Most closed flows, and most ended jobs, that are remembered."""

KEEP_DURATIONS = 1024
"""Most iteration durations per job that wait for a slow controller; older ones are lost to it."""


_KINDS = {
    FlowKind.COLLECTIVE: pb.FLOW_KIND_COLLECTIVE,
    FlowKind.CONTROL: pb.FLOW_KIND_CONTROL,
}


_HEALTH = {
    Health.RUNNING: pb.JOB_STATE_RUNNING,
    Health.HUNG: pb.JOB_STATE_HUNG,
    Health.ENDED: pb.JOB_STATE_ENDED,
    Health.DIED: pb.JOB_STATE_DIED,
}

_OVER = (pb.JOB_STATE_ENDED, pb.JOB_STATE_DIED)


class _Versioned(Protocol):
    version: int


Key = TypeVar("Key")
Record = TypeVar("Record", bound=_Versioned)


@dataclass(slots=True)
class _JobRecord:
    version: int
    message: pb.JobProgress
    durations: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=KEEP_DURATIONS))
    counter: IterationCounter | None = None
    """Estimates what the log does not tell yet; None where the job is over."""
    measured: pb.JobProgress = field(default_factory=pb.JobProgress)
    """What is known of the job from elsewhere than its log and its processes."""


@dataclass(slots=True)
class _FlowRecord:
    version: int
    flow: Flow


@dataclass(slots=True)
class _ClosedRecord:
    version: int


@dataclass(frozen=True, slots=True)
class _QueuePairsRecord:
    version: int = 0
    message: pb.QueuePairs = field(default_factory=pb.QueuePairs)


class HostState:
    """The jobs and flows of this host as the controllers are to know them."""

    def __init__(self, on_urgent: Callable[[], None], on_change: Callable[[], None] = lambda: None) -> None:
        """``on_urgent`` is called after a change worth a Report at once, ``on_change`` after any other."""
        self.version = 0
        self._on_urgent = on_urgent
        self._on_change = on_change
        # Most recently changed last, so that a Report looks only at what has changed.
        self._jobs: OrderedDict[str, _JobRecord] = OrderedDict()
        self._flows: OrderedDict[FiveTuple, _FlowRecord] = OrderedDict()
        self._closed: OrderedDict[FiveTuple, _ClosedRecord] = OrderedDict()
        self._queue_pairs = _QueuePairsRecord()
        self._forgotten = 0  # streams that have not reported this far need a full Report

    def job_changed(self, job: TrackedJob, durations_ns: Iterable[int] = (), *, ended: bool = False) -> None:
        """Take in a job as it is now, and the durations of the iterations it completed."""
        over = job.health if job.health is Health.DIED else Health.ENDED
        message = pb.JobProgress(
            job=job.id,
            state=_HEALTH[over if ended else job.health],
            source=job.source or "none",
            log_format=job.log_format,
            iterations=job.counter.iterations,
            started_ns=job.started_ns,
            last_iteration_ns=job.counter.last_ns,
            world_size=job.world_size,
            local_ranks=job.local_ranks,
        )
        record = self._jobs.get(job.id)
        if record is not None and record.message == message:
            return
        self.version += 1
        # A job of the same name that started anew does not inherit the old one's durations.
        if record is None or record.message.started_ns != job.started_ns:
            record = _JobRecord(self.version, message)
        record.version, record.message = self.version, message
        record.counter = None if ended else job.counter
        record.durations.extend((self.version, duration) for duration in durations_ns)
        self._put(self._jobs, job.id, record)
        if ended:
            self._forget_ended()
        self._on_urgent()

    def flows_changed(self, changes: Changes, flows: Mapping[FiveTuple, Flow]) -> None:
        """Take in what a look at the connections brought; ``flows`` are those open now."""
        if not (changes.opened or changes.changed or changes.closed):
            return
        self.version += 1
        for key in changes.closed:
            self._flows.pop(key, None)
            self._put(self._closed, key, _ClosedRecord(self.version))
        for key in (*changes.opened, *changes.changed):
            self._closed.pop(key, None)
            self._put(self._flows, key, _FlowRecord(self.version, flows[key]))
        while len(self._closed) > KEEP_CLOSED:
            self._forgotten = max(self._forgotten, self._closed.popitem(last=False)[1].version)
        if changes.opened or changes.closed:
            self._on_urgent()
        else:
            self._on_change()

    def timing_changed(self, job: str, timing: Timing) -> None:
        """Take in what an iteration of ``job`` is made of."""
        message = pb.Timing(
            iteration_ns=timing.iteration_ns,
            spread_ns=timing.spread_ns,
            iterations=timing.count,
            confidence=timing.confidence,
            communication_ns=timing.communication_ns,
            slack_ns=timing.slack_ns,
            slack_confirmed=timing.slack_confirmed,
            bursts=timing.bursts,
        )
        if (record := self._jobs.get(job)) is not None and record.measured.timing != message:
            record.measured.timing.CopyFrom(message)
            self._measured(job, record)

    def brief_changed(self, job: str, brief: Brief) -> None:
        """Take in how many connections of ``job`` came and went unlisted."""
        record = self._jobs.get(job)
        if record is not None and record.measured.brief_flows != brief.count:
            record.measured.brief_flows, record.measured.brief_bytes = brief.count, brief.bytes_sent
            self._measured(job, record)

    def communicators_changed(self, job: str, communicators: Mapping[int, JobCommunicator]) -> None:
        """Take in the NCCL communicators of ``job``, by id."""
        if (record := self._jobs.get(job)) is None:
            return
        del record.measured.communicators[:]
        for id_, communicator in communicators.items():
            record.measured.communicators.add(
                id=id_,
                name=communicator.name,
                ranks=communicator.ranks,
                nodes=communicator.nodes,
                local_ranks=sorted(communicator.local_ranks),
                collectives=max(communicator.collectives.values(), default=0),
            )
        self._measured(job, record)

    def queue_pairs_changed(self, pairs: Iterable[JobQueuePair]) -> None:
        """Take in all queue pairs of this host's jobs."""
        self.version += 1
        message = pb.QueuePairs()
        for pair in pairs:
            message.pairs.add(
                source=pair.source,
                job=pair.job,
                local_qp=pair.local,
                remote_qp=pair.remote,
                source_port=pair.source_port,
                communicator=pair.communicator,
            )
        self._queue_pairs = _QueuePairsRecord(self.version, message)
        self._on_urgent()

    def report(self, since: int | None, sequence: int, now_ns: int) -> pb.Report:
        """Return the Report of what changed after version ``since``.

        It is a full one where that is None or too long ago. It has no iteration durations when ``since`` is
        None: it says how things are, and those that passed before the stream began say nothing about now.
        """
        self._estimate(now_ns)
        full = since is None or since < self._forgotten
        horizon = -1 if full or since is None else since
        report = pb.Report(sequence=sequence, monotonic_ns=now_ns, full=full)
        for _, job in _newer(self._jobs, horizon):
            if full and job.message.state in _OVER:
                continue
            entry = report.jobs.add()
            entry.CopyFrom(job.message)
            entry.MergeFrom(job.measured)
            if since is not None:
                entry.iteration_ns.extend(ns for version, ns in job.durations if version > since)
        for key, record in _newer(self._flows, horizon):
            report.flows.add(
                tuple=tuple_message(key),
                job=record.flow.job,
                opened_ns=record.flow.opened_ns,
                bytes_sent=record.flow.bytes_sent,
                kind=_KINDS[record.flow.kind],
                communicator=record.flow.communicator,
            )
        if self._queue_pairs.version > max(horizon, 0):
            report.queue_pairs.CopyFrom(self._queue_pairs.message)
        if not full:
            report.closed.extend(tuple_message(key) for key, _ in _newer(self._closed, horizon))
        return report

    def _estimate(self, now_ns: int) -> None:
        """Estimate what the logs that tell only every so many iterations have not told yet."""
        for name, record in list(self._jobs.items()):
            if record.counter is None:
                continue
            iterations, error = record.counter.estimate(now_ns)
            if (record.measured.estimated, record.measured.estimated_error) != (iterations, error):
                record.measured.estimated, record.measured.estimated_error = iterations, error
                self.version += 1
                record.version = self.version
                self._put(self._jobs, name, record)

    def _measured(self, job: str, record: _JobRecord) -> None:
        self.version += 1
        record.version = self.version
        self._put(self._jobs, job, record)
        self._on_change()

    def _put(self, records: OrderedDict[Key, Record], key: Key, record: Record) -> None:
        records[key] = record
        records.move_to_end(key)

    def _forget_ended(self) -> None:
        ended = [id_ for id_, job in self._jobs.items() if job.message.state in _OVER]
        for id_ in ended[: max(0, len(ended) - KEEP_CLOSED)]:
            self._forgotten = max(self._forgotten, self._jobs.pop(id_).version)


def tuple_message(key: FiveTuple) -> pb.FiveTuple:
    """Return the protocol's form of a 5-tuple."""
    return pb.FiveTuple(
        source=key.source,
        destination=key.destination,
        protocol=key.protocol,
        source_port=key.source_port,
        destination_port=key.destination_port,
        destination_qp=key.destination_qp,
    )


def _newer(records: OrderedDict[Key, Record], since: int) -> Iterator[tuple[Key, Record]]:
    """Return what changed after version ``since``, newest first."""
    return takewhile(lambda item: item[1].version > since, reversed(records.items()))
