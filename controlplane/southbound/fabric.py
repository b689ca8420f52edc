"""All the switches of the configuration, each with a session of its own."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType

import structlog
from finsy import P4Schema
from finsy.proto import p4r

import p4src
from controlplane.int_report import Hop, IntReport, ReportError, parse
from controlplane.model import FiveTuple
from controlplane.southbound import tables
from controlplane.southbound.arbitration import Election
from controlplane.southbound.connection import Connection
from controlplane.southbound.contract import bind
from controlplane.southbound.device import Driver
from controlplane.southbound.encode import Encoder
from controlplane.southbound.errors import SwitchError
from controlplane.southbound.session import Session
from controlplane.southbound.state import Desired, FlowEntry, Held
from controlplane.southbound.status import Outcome, SwitchStatus
from controlplane.southbound.target import NO_OPENFLOW, OpenFlowTarget, Target, openflow_installed
from leveller.errors import UserError

log = structlog.get_logger()

_ONE_BY_ONE = 256
"""Flows whose counters are asked for one by one at most."""


class Fabric:
    """The switches, kept at the latest ``Desired`` each.

    ``async with Fabric(targets, p4src.program("v1model"), election_id=1, on_report=...) as fabric``
    Sessions start at once, connect in the background, reconnect with back-off and reconcile by themselves.

    ``on_report(switch, report)`` is called in the event loop for every INT probe that a switch sank.
    ``on_status(status)`` is called whenever a switch connects, is lost, or becomes primary or backup.
    ``deadline_s`` bounds every single RPC; past it the session starts anew.
    Raises UserError where the program's P4Info is not the contract's, or os-ken is missed.
    """

    def __init__(
        self,
        targets: Sequence[Target | OpenFlowTarget],
        program: p4src.Program,
        *,
        election_id: int = 1,
        on_report: Callable[[str, IntReport], None] | None = None,
        on_status: Callable[[SwitchStatus], None] | None = None,
        deadline_s: float = 5.0,
    ) -> None:
        self._schema = schema = P4Schema(program.p4info, program.json)
        self._encoder = Encoder(bind(schema.p4info, program.p4info.name))
        self._counters = {counter.preamble.alias: counter.preamble.id for counter in schema.p4info.counters}
        self._dscp = program.constants["INT_DSCP"]
        self._on_report = on_report
        self._on_status = on_status
        self._bad_reports = {target.name: 0 for target in targets}
        self._election_id = election_id
        self._deadline_s = deadline_s
        self._sessions = {
            target.name: Session(
                self._driver(target), deadline_s, partial(self._packet, target.name), self._status_changed
            )
            for target in targets
        }
        self._tasks: list[asyncio.Task[None]] = []

    def _driver(self, target: Target | OpenFlowTarget) -> Driver:
        if isinstance(target, OpenFlowTarget):
            if not openflow_installed():
                raise UserError(f"switch {target.name}: {NO_OPENFLOW[0]}", NO_OPENFLOW[1])
            from controlplane.openflow.device import driver

            return driver(target, self._dscp, self._election_id, self._deadline_s)
        election = Election(self._election_id)
        connect = partial(Connection, target, self._schema, self._encoder, election, self._deadline_s)
        return Driver(target.name, target.address, connect, self._encoder.sizes)

    async def __aenter__(self) -> Fabric:
        """Start every session; none is waited for."""
        # What is loaded by now stays: keep the collector from walking it in the middle of a re-ranking.
        gc.collect()
        gc.freeze()
        self._tasks = [
            asyncio.create_task(session.run(), name=f"switch {name}")
            for name, session in self._sessions.items()
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every session. The switches go on with what they hold."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def apply(self, desired: Mapping[str, Desired]) -> Mapping[str, Outcome]:
        """Bring the named switches to ``desired``; the others keep what they were last given.

        Returns when each of them is there, failed, or has no session (which is known at once). The
        newest call wins: one that a switch had not finished comes back ``SUPERSEDED`` for it. So it may be
        awaited or run as a task; a slow switch never makes a queue. Raises KeyError for an unknown name.
        """
        futures = {name: self._sessions[name].submit(each) for name, each in desired.items()}
        return dict(zip(futures, await asyncio.gather(*futures.values()), strict=True))

    def prefer(self, rates: Mapping[int, float]) -> None:
        """Say whose flows keep their entries where a table has no room for all: ``rates`` is group -> R.

        The lowest goes first; it counts from the next write on, and is looked at again every few seconds.
        """
        for session in self._sessions.values():
            session.prefer(rates)

    def status(self) -> Mapping[str, SwitchStatus]:
        """Name -> state of every switch."""
        return {name: self._with_reports(session.status()) for name, session in self._sessions.items()}

    def left_out(self) -> Mapping[str, Mapping[int, int]]:
        """Name -> group -> flows without an entry, of the switches that have no room for all."""
        left_out = ((name, session.left_out()) for name, session in self._sessions.items())
        return {name: groups for name, groups in left_out if groups}

    def held(self, switch: str) -> Held | None:
        """Return what the switch holds, as read back or acknowledged since; None while that is not known.

        A controller that starts adopts group numbers and slots from here instead of moving every flow.
        """
        return self._sessions[switch].held()

    async def connected(self) -> None:
        """Wait until every switch has a session and was read back, or is another controller's."""
        await asyncio.gather(*(session.in_order.wait() for session in self._sessions.values()))

    async def read_counter(self, switch: str, name: str) -> Mapping[int, tuple[int, int]]:
        """Index -> (packets, bytes) of the indirect counter ``name``, such as ``egress_port_counter``.

        Indices never counted are left out. Raises SwitchError where the switch has no session or does not
        answer, KeyError for a name that the program does not have.
        """
        entity = p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=self._counters[name]))
        counts = {}
        async for read in self._read(switch, [entity]):
            data = read.counter_entry.data
            if data.packet_count or data.byte_count:
                counts[read.counter_entry.index.index] = (data.packet_count, data.byte_count)
        return counts

    async def read_flow_counters(
        self, switch: str, flows: Collection[FiveTuple] | None = None
    ) -> Mapping[FiveTuple, tuple[int, int]]:
        """Flow -> (packets, bytes) that this switch's flow entries counted; flows as in ``Held``.

        With ``flows`` of these only, as they are given, those that have no entry left out: few of them are
        asked for one by one, which is quicker than the whole tables. Raises SwitchError where the switch has
        no session or does not answer.
        """
        rows = {
            (table, key): flow
            for flow in flows or ()
            for table, keys in tables.flow_rows({flow: FlowEntry(0, 0)}).items()
            for key in keys
        }
        if flows is not None and len(rows) <= _ONE_BY_ONE:
            entities = [self._encoder.read_flow_counter(table, key) for table, key in rows]
        else:
            entities = [self._encoder.read_flow_counters(table) for table in tables.FLOW_TABLES]
        counts = {}
        async for read in self._read(switch, entities):
            row = self._encoder.decode(read.table_entry)
            if row is not None:
                table, key, _ = row
                flow = tables.flow_of(table, key) if flows is None else rows.get((table, key))
                data = read.table_entry.counter_data
                if flow is not None:
                    counts[flow] = (data.packet_count, data.byte_count)
        return counts

    def _read(self, switch: str, entities: Sequence[p4r.Entity]) -> AsyncIterator[p4r.Entity]:
        try:
            device = self._sessions[switch].device()
        except SwitchError as error:
            raise SwitchError(f"{switch}: {error}") from None
        if not isinstance(device, Connection):
            raise SwitchError(f"{switch}: it does not speak P4Runtime, and has no such counters")
        return device.read(entities)

    def _packet(self, switch: str, packet: bytes, hop: Hop | None) -> None:
        try:
            report = parse(packet, self._dscp)
        except ReportError as error:
            # Counted always, told only now and then: hosts decide how many come.
            count = self._bad_reports[switch] = self._bad_reports[switch] + 1
            if count.bit_count() == 1:
                log.warning("packet-in is not an INT probe", switch=switch, reason=str(error), so_far=count)
            return
        if hop is not None:
            report = replace(report, hops=(*report.hops, hop))
        if self._on_report is not None:
            self._on_report(switch, report)

    def _status_changed(self, status: SwitchStatus) -> None:
        if self._on_status is not None:
            self._on_status(self._with_reports(status))

    def _with_reports(self, status: SwitchStatus) -> SwitchStatus:
        return replace(status, bad_reports=self._bad_reports[status.name])
