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
from hostagent.flows.tracker import Changes, Flow
from hostagent.jobs.tracker import TrackedJob

KEEP_CLOSED = 4096
"""Most closed flows, and most ended jobs, that are remembered."""

KEEP_DURATIONS = 1024
"""Most iteration durations per job that wait for a slow controller; older ones are lost to it."""


class _Versioned(Protocol):
    version: int


Key = TypeVar("Key")
Record = TypeVar("Record", bound=_Versioned)


@dataclass(slots=True)
class _JobRecord:
    version: int
    message: pb.JobProgress
    durations: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=KEEP_DURATIONS))


@dataclass(slots=True)
class _FlowRecord:
    version: int
    flow: Flow


@dataclass(slots=True)
class _ClosedRecord:
    version: int


class HostState:
    """The jobs and flows of this host as the controllers are to know them."""

    def __init__(self, on_urgent: Callable[[], None]) -> None:
        """``on_urgent`` is called after a change that is worth a Report at once."""
        self.version = 0
        self._on_urgent = on_urgent
        # Most recently changed last, so that a Report looks only at what has changed.
        self._jobs: OrderedDict[str, _JobRecord] = OrderedDict()
        self._flows: OrderedDict[FiveTuple, _FlowRecord] = OrderedDict()
        self._closed: OrderedDict[FiveTuple, _ClosedRecord] = OrderedDict()
        self._forgotten = 0  # streams that have not reported this far need a full Report

    def job_changed(self, job: TrackedJob, durations_ns: Iterable[int] = (), *, ended: bool = False) -> None:
        """Take in a job as it is now, and the durations of the iterations it completed."""
        message = pb.JobProgress(
            job=job.id,
            state=pb.JOB_STATE_ENDED if ended else pb.JOB_STATE_RUNNING,
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

    def report(self, since: int | None, sequence: int, now_ns: int) -> pb.Report:
        """Return the Report of what changed after version ``since``.

        It is a full one where that is None or too long ago. It has no iteration durations when ``since`` is
        None: it says how things are, and those that passed before the stream began say nothing about now.
        """
        full = since is None or since < self._forgotten
        horizon = -1 if full or since is None else since
        report = pb.Report(sequence=sequence, monotonic_ns=now_ns, full=full)
        for _, job in _newer(self._jobs, horizon):
            if full and job.message.state == pb.JOB_STATE_ENDED:
                continue
            entry = report.jobs.add()
            entry.CopyFrom(job.message)
            if since is not None:
                entry.iteration_ns.extend(ns for version, ns in job.durations if version > since)
        for key, record in _newer(self._flows, horizon):
            report.flows.add(
                tuple=tuple_message(key),
                job=record.flow.job,
                opened_ns=record.flow.opened_ns,
                bytes_sent=record.flow.bytes_sent,
            )
        if not full:
            report.closed.extend(tuple_message(key) for key, _ in _newer(self._closed, horizon))
        return report

    def _put(self, records: OrderedDict[Key, Record], key: Key, record: Record) -> None:
        records[key] = record
        records.move_to_end(key)

    def _forget_ended(self) -> None:
        ended = [id_ for id_, job in self._jobs.items() if job.message.state == pb.JOB_STATE_ENDED]
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
