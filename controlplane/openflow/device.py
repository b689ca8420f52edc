"""One OpenFlow 1.3 session with one switch: role, flow-mods with barriers, read-back.

The same shape as P4Runtime's session (`controlplane.southbound.device`), so that ledger, difference and
reconciliation are the same for both.

Roles (specification, 6.3.6): this controller claims the master's with a generation id whose upper bits are
its election id's, so a switch refuses it while one of a higher rank has claimed. OpenFlow 1.3 has no word
for 'your master is gone': a backup stays one until it is started anew with a higher rank.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import structlog
from finsy.grpcutil import GRPCStatusCode
from finsy.p4client import P4Error
from os_ken.ofproto import ofproto_v1_3 as of
from os_ken.ofproto import ofproto_v1_3_parser as parser

from controlplane.int_report import Hop
from controlplane.openflow import wire
from controlplane.openflow.counts import COUNTED, Counts
from controlplane.openflow.ecmp import EcmpGroups
from controlplane.openflow.entries import BANK, EDGE, LEVEL, PORT, Flow, UnsupportedError, egress_port
from controlplane.openflow.hub import HUB, Switch
from controlplane.openflow.pipeline import Pipeline, static
from controlplane.openflow.refused import RefusedError, p4_error
from controlplane.southbound.contract import CONTRACT
from controlplane.southbound.device import Driver, OnPacket
from controlplane.southbound.diff import Change
from controlplane.southbound.errors import LostPrimacyError, SwitchError
from controlplane.southbound.tables import Call, Key
from controlplane.southbound.target import OpenFlowTarget

log = structlog.get_logger()

_READ_DEADLINE_S = 30.0


class OpenFlowDevice:
    """See the module. ``node_id`` stands for the switch in the paths of the probes that it sinks."""

    def __init__(self, target: OpenFlowTarget, int_dscp: int, rank: int, deadline_s: float) -> None:
        self._datapath_id = target.datapath_id
        self._node_id = target.node_id
        self._pipeline = Pipeline(int_dscp)
        self._rank = rank
        self._deadline_s = deadline_s
        self._switch: Switch | None = None
        self._arrived = asyncio.Event()
        self._gone = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._replies: dict[int, asyncio.Future[list[Any]]] = {}
        """Transaction id -> what answers it, all parts."""
        self._parts: dict[int, list[Any]] = {}
        self._errors: dict[int, Any] = {}
        self._ecmp = EcmpGroups()
        self._made: set[int] = set()
        """ECMP groups that the switch has."""
        self._counts = Counts()
        self._meters: dict[int, bool] = {}
        """Meters that the switch has: number -> whether it is as ours are."""
        self._on_packet: OnPacket | None = None
        self.primary = False

    async def open(self) -> None:
        """Wait for the switch to connect, and claim to be its master."""
        HUB.attach(self._datapath_id, self._receive)
        try:
            async with asyncio.timeout(self._deadline_s):
                await self._arrived.wait()
        except TimeoutError:
            raise SwitchError(
                f"no OpenFlow switch with datapath id {self._datapath_id:#x} has connected to {HUB.address}"
            ) from None
        generation = self._rank << 48 | time.time_ns() // 1_000_000 & (1 << 48) - 1
        try:
            await self._ask(parser.OFPRoleRequest(self._datapath, of.OFPCR_ROLE_MASTER, generation))
        except RefusedError as error:
            if error.type != of.OFPET_ROLE_REQUEST_FAILED:
                raise SwitchError(f"claiming to be its master: {error}") from None
        else:
            self.primary = True
        await self._find_meters()

    async def _find_meters(self) -> None:
        """Find out whether the switch has meters (OpenFlow may lack them), and which."""
        try:
            most = wire.max_meter(await self._ask(parser.OFPMeterFeaturesStatsRequest(self._datapath, 0)))
        except RefusedError:
            most = 0
        self._pipeline = replace(self._pipeline, max_meter=most)
        if not most:
            log.warning("no meters: hosts may send any number of probes", switch=self._datapath_id)

    async def close(self) -> None:
        """Let the switch go; what waits for it ends with an error."""
        self.primary = False
        HUB.detach(self._datapath_id)
        self._end("the session was closed")

    async def listen(self, on_role: Callable[[], None], on_packet: OnPacket) -> None:
        """Hand on the probes that the switch sinks, for as long as it stays; always ends with SwitchError."""
        del on_role  # a master is not told when it is deposed: its next write is refused
        self._on_packet = on_packet
        await self._gone.wait()
        raise SwitchError("the switch closed the connection")

    async def ensure_pipeline(self) -> bool:
        """Write the entries that every row relies on, where they are missing; return whether they were."""
        missing = self._missing(_said(await self._stats(of.OFPTT_ALL)))
        errors = await self._send([wire.flow_mod(self._datapath, flow) for flow in missing])
        for error in errors.values():
            raise SwitchError(f"the pipeline's own entries: {error}")
        return bool(missing)

    def prepare(self, changes: Sequence[Change]) -> Sequence[Change]:
        """Return ``changes``: messages need their ids, which are given when they are sent."""
        return changes

    async def write(self, changes: Sequence[Change], /) -> dict[int, P4Error]:
        """Write one batch; return position -> error of those that failed; the others are in force."""
        refused: dict[int, P4Error] = {}
        messages: list[Any] = []
        owners: list[Sequence[int]] = []
        """Of each message: the positions of the changes that it brings about."""
        entries: dict[int, int] = {}
        """Position -> entries of the row that are counted."""
        groups: dict[int, list[int]] = {}
        before: dict[int, Call | None] = {}
        for at, change in enumerate(changes):
            if change.table == "ecmp":
                group, before[at] = self._ecmp.set(change.key, change.call)
                groups.setdefault(group, []).append(at)
                continue
            try:
                gone, keep = self._entries(change)
            except UnsupportedError as error:
                refused[at] = p4_error(GRPCStatusCode.UNIMPLEMENTED, str(error))
                continue
            made = [
                *self._meter_messages(change),
                *(wire.flow_mod(self._datapath, flow, delete=True) for flow in gone),
                *(wire.flow_mod(self._datapath, flow) for flow in keep),
            ]
            messages += made
            owners += [(at,)] * len(made)
            entries[at] = sum(flow.table in COUNTED for flow in keep or gone)
        made_before = self._made & groups.keys()
        for group, members in groups.items():
            buckets = self._ecmp.buckets(group)
            messages.append(wire.group_mod(self._datapath, group, buckets, new=group not in self._made))
            owners.append(members)
            (self._made.add if buckets else self._made.discard)(group)
        failures = await self._send(messages)
        failed = Counter(position for at in failures for position in owners[at])
        for position, count in entries.items():
            self._counts.note(changes[position], count, failed[position])
        for at, failure in failures.items():
            if failure.type == of.OFPET_BAD_REQUEST and failure.code == of.OFPBRC_IS_SLAVE:
                self.primary = False
                raise LostPrimacyError(f"a write: {failure}")
            if failure.type == of.OFPET_METER_MOD_FAILED:
                self._meters.pop(changes[owners[at][0]].key[0], None)  # type: ignore[arg-type]  # a port
            for position in owners[at]:
                refused[position] = failure.as_p4()
                if position in before:  # the group is as it was
                    group, _ = self._ecmp.set(changes[position].key, before[position])
                    (self._made.add if group in made_before else self._made.discard)(group)
        return refused

    async def rows(
        self, tables: Collection[str] | None = None, deadline_s: float | None = None
    ) -> AsyncIterator[tuple[str, Key, Call]]:
        """Yield what the switch holds: (table, key, call).

        ``tables`` is None, which is reading back, or `_LOOKED_IN`, or that and `_LOOKED_THROUGH`. Where there
        are more or less entries in the long tables than were written, or one of the pipeline's own is
        missing, the bank comes back as incomplete, except in reading back. For `_LOOKED_IN` alone the long
        tables are not read, but counted.
        """
        deadline_s = deadline_s or _READ_DEADLINE_S
        whole = tables is None or not set(tables).issubset(_LOOKED_IN)
        numbers = [of.OFPTT_ALL] if whole else _SHORT
        stats = [each for number in numbers for each in await self._stats(number, deadline_s)]
        await self._read_meters(deadline_s)
        # In a thread, as there may be so many that other switches would have to wait.
        flows, rows, foreign = await asyncio.to_thread(self._decode, stats)
        await self._read_groups(deadline_s)
        rows |= self._ecmp.rows()
        if whole:
            counted = sum(each.table_id in COUNTED for each in stats)
        else:
            counted = await self._count(deadline_s)
        if tables is None:
            if unknown := len(foreign) + len(stats) - len(flows):
                one = str(foreign[0]) if foreign else None
                log.warning("entries of somebody else's", switch=self._datapath_id, count=unknown, one=one)
            self._counts.read(counted, self._pipeline.partial(rows, flows))
        elif counted != self._counts.expected or any(
            whole or flow.table in _SHORT for flow in self._missing(flows)
        ):
            rows["active_bank", ()] = Call("incomplete")
        for (table, key), call in rows.items():
            if tables is None or table in tables:
                yield table, key, call

    # -- messages

    @property
    def _datapath(self) -> Any:  # noqa: ANN401 (os-ken is untyped)
        if self._switch is None:
            raise SwitchError("the switch closed the connection")
        return self._switch.datapath

    def _decode(self, stats: Iterable[Any]) -> tuple[list[Flow], dict[tuple[str, Key], Call], list[Flow]]:
        """Return the entries that ``stats`` tell of, the rows that these are, and those that are nobody's."""
        flows = [self._with_meter(flow) for flow in _said(stats)]
        return flows, *self._pipeline.decode(flows)

    def _missing(self, flows: Iterable[Flow]) -> list[Flow]:
        """Return the pipeline's own entries that are not among ``flows``."""
        there = {flow.key: flow for flow in flows}
        return [flow for flow in static(self._pipeline.int_dscp) if there.get(flow.key) != flow]

    def _entries(self, change: Change) -> tuple[list[Flow], list[Flow]]:
        """Return the entries that ``change`` takes away first, and those that it then writes."""
        keep = [] if change.call is None else self._pipeline.encode(change.table, change.key, change.call)
        kept = {flow.key for flow in keep}
        gone = [flow for flow in self._pipeline.may_hold(change.table, change.key) if flow.key not in kept]
        return gone, keep

    def _meter_messages(self, change: Change) -> list[Any]:
        """Return what makes the meter that the entries of a host's port need, before they are written.

        One that is not needed any more stays: a switch that loses it would drop the entries that are to go.
        """
        if change.table != "edge_port" or change.call is None or change.call.action != "host_facing":
            return []
        port = change.key[0]
        if not isinstance(port, int) or self._meters.get(port):
            return []
        if port > self._pipeline.max_meter:
            if self._pipeline.max_meter:
                log.warning(
                    "no meter for a port: its host may send any number of probes",
                    switch=self._datapath_id,
                    port=port,
                )
            return []
        command = of.OFPMC_MODIFY if port in self._meters else of.OFPMC_ADD
        self._meters[port] = True
        return [wire.meter_mod(self._datapath, port, command)]

    async def _read_meters(self, deadline_s: float) -> None:
        self._meters = {}
        if self._pipeline.max_meter:
            configs = await self._multipart(
                parser.OFPMeterConfigStatsRequest(self._datapath, 0, of.OFPM_ALL), deadline_s
            )
            self._meters = {config.meter_id: wire.is_probes_meter(config) for config in configs}

    async def _read_groups(self, deadline_s: float) -> None:
        parts = await self._multipart(parser.OFPGroupDescStatsRequest(self._datapath, 0), deadline_s)
        self._ecmp = EcmpGroups(
            {
                group: wire.buckets_of(part)
                for part in parts
                if (group := wire.group_of(part.group_id)) is not None
            }
        )
        self._made = set(self._ecmp.members)

    async def _count(self, deadline_s: float) -> int:
        """Return how many entries there are in the tables of ``COUNTED``."""
        parts = await self._multipart(parser.OFPTableStatsRequest(self._datapath, 0), deadline_s)
        return sum(part.active_count for part in parts if part.table_id in COUNTED)

    def _with_meter(self, flow: Flow) -> Flow:
        """Return ``flow`` without its meter where that is not as ours are: its row is then written anew."""
        return flow if flow.meter is None or self._meters.get(flow.meter) else replace(flow, meter=None)

    async def _stats(self, table: int, deadline_s: float = _READ_DEADLINE_S) -> list[Any]:
        """Return what the switch tells of its entries in ``table``."""
        return await self._multipart(parser.OFPFlowStatsRequest(self._datapath, 0, table), deadline_s)

    async def _multipart(self, request: Any, deadline_s: float) -> list[Any]:  # noqa: ANN401
        try:
            return [entry for part in await self._ask(request, deadline_s) for entry in part.body]
        except RefusedError as error:
            raise SwitchError(f"a read: {error}") from None

    async def _send(self, messages: list[Any]) -> dict[int, RefusedError]:
        """Send ``messages`` and a barrier; return position -> error of those that the switch refused."""
        if not messages:
            return {}
        barrier = parser.OFPBarrierRequest(self._datapath)
        xids = await self._ask(barrier, before=messages)
        found = {at: self._errors.pop(xid) for at, xid in enumerate(xids) if xid in self._errors}
        return {at: RefusedError(message) for at, message in found.items()}

    async def _ask(
        self,
        request: Any,  # noqa: ANN401
        deadline_s: float | None = None,
        before: Sequence[Any] = (),
    ) -> list[Any]:
        """Send ``before`` and ``request``; return the parts of its answer, or the ids of ``before`` if any.

        Raises RefusedError where the switch refuses the request, SwitchError where it does not answer.
        """
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        deadline_s = deadline_s or self._deadline_s
        async with self._one_at_a_time:  # several writes may be under way: each has the whole deadline
            switch = self._switch
            if switch is None:
                raise SwitchError("the switch closed the connection")
            self._errors.clear()
            xid = switch.datapath.set_xid(request)
            self._replies[xid] = future
            try:
                async with asyncio.timeout(deadline_s):
                    xids = await switch.send([*before, request])
                    parts = await future
            except TimeoutError:
                raise SwitchError(f"no answer in {deadline_s:g} s") from None
            finally:
                self._replies.pop(xid, None)
                self._parts.pop(xid, None)
        return xids[:-1] if before else parts

    def _receive(self, switch: Switch | None, message: Any) -> None:  # noqa: ANN401
        if message is None and self._switch is not None:
            self._end("the switch closed the connection")  # a second connection ends the session of the first
        elif switch is None:
            pass  # that was a connection from before this session
        elif message is None:
            self._switch = switch
            self._arrived.set()
        elif isinstance(message, parser.OFPPacketIn):
            if self._on_packet is not None:
                seen = dict(message.match.items())
                hop = Hop(self._node_id, seen.get("in_port"), egress_port(seen.get("metadata", 0)))
                self._on_packet(bytes(message.data), hop)
        elif isinstance(message, parser.OFPErrorMsg):
            self._errors[message.xid] = message
            if (future := self._replies.get(message.xid)) is not None and not future.done():
                future.set_exception(RefusedError(message))
        elif (future := self._replies.get(message.xid)) is not None and not future.done():
            parts = self._parts.setdefault(message.xid, [])
            parts.append(message)
            if not getattr(message, "flags", 0) & of.OFPMPF_REPLY_MORE:
                future.set_result(parts)

    def _end(self, why: str) -> None:
        self._gone.set()
        self._switch = None
        for future in self._replies.values():
            if not future.done():
                future.set_exception(SwitchError(why))


_LOOKED_IN = ("active_bank", "edge_port", "int_sink", "level_queue", "ecmp")
_LOOKED_THROUGH = (
    "flow_group_v4", "flow_group_v6", "group_level", "default_level", "ipv4_lpm", "ipv6_lpm",
)  # fmt: skip
_SHORT = (EDGE, BANK, LEVEL, PORT)
"""The tables of the switch's whose entries, but for ``ecmp``, tell the rows of those."""


def _said(stats: Iterable[Any]) -> list[Flow]:
    """Return the entries that ``stats`` tell of, but for those that `Flow` cannot say."""
    return [flow for each in stats if (flow := wire.flow_of(each)) is not None]


def driver(target: OpenFlowTarget, int_dscp: int, rank: int, deadline_s: float) -> Driver:
    """Return how to reach ``target``; listens for it from now on. Raises UserError where that cannot be."""
    HUB.listen(target.listen)
    connect = partial(OpenFlowDevice, target, int_dscp, rank, deadline_s)
    sizes = dict.fromkeys(CONTRACT, 1 << 20)
    return Driver(
        target.name, f"datapath {target.datapath_id:#x}", connect, sizes, _LOOKED_IN, _LOOKED_THROUGH
    )
