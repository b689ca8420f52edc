"""What a live switch says of itself, by unary reads alone: no stream, so no part in the arbitration."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import grpc
from finsy import GNMIPath
from finsy.gnmiclient import GNMIClient, GNMIClientError
from finsy.proto import p4i, p4r, p4r_grpc

from controlplane.findings import Finding, Note
from controlplane.southbound.target import NO_OPENFLOW, openflow_installed
from controlplane.switch_config import SwitchSection

_Get = p4r.GetForwardingPipelineConfigRequest

_PORT_COUNTERS = ("ingress_port_counter", "egress_port_counter")
_NOBODY = 2**64 - 1
"""A device id that nothing has."""

_LIKELY = range(64)
"""Device ids that are asked for where a switch may have another than it is thought to have."""

_PORTS = GNMIPath("interfaces/interface[name=*]/state/ifindex")
_QUEUES = GNMIPath("qos/interfaces/interface[name=*]/output/queues/queue[name=*]/state/id")


@dataclass(slots=True)
class Asked:
    """One switch's answers."""

    reached: bool = False
    cookie: int | None = None
    info: p4i.P4Info | None = None
    """The P4Info that was pushed with the program it runs; None where none was pushed."""
    any_device: bool = False
    """It says of every device id alike that this device has no pipeline, as bmv2 does."""
    traffic: Mapping[int, int] = field(default_factory=dict)
    """Port -> packets, of ports that have carried any."""
    queues: frozenset[int] | None = None
    """Queue numbers that its gNMI lists; None where it has no gNMI, or lists none."""
    said: list[Finding | Note] = field(default_factory=list)


async def ask(switch: SwitchSection, deadline_s: float) -> Asked:
    """Ask ``switch``; whatever goes wrong is a finding."""
    asked = Asked()
    if switch.protocol == "openflow":
        asked.said.append(Note(switch.name, "connection", "it speaks OpenFlow, and was not asked"))
        if not openflow_installed():
            asked.said.append(Finding(switch.name, "configuration", *NO_OPENFLOW))
        return asked
    channel = switch.target().channel()
    try:
        await _Questions(switch, p4r_grpc.P4RuntimeStub(channel), asked, deadline_s).put()
        if asked.reached:
            await _ask_gnmi(switch, channel, asked, deadline_s)
    except grpc.aio.AioRpcError as error:
        asked.said.append(_unanswered(switch, error, deadline_s))
    finally:
        await channel.close(None)
    return asked


class _Questions:
    def __init__(
        self,
        switch: SwitchSection,
        stub: p4r_grpc.P4RuntimeAsyncStub,
        asked: Asked,
        deadline_s: float,
    ) -> None:
        self._switch, self._stub = switch, stub
        self._asked, self._deadline_s = asked, deadline_s

    async def put(self) -> None:
        self._asked.reached = await self._ask_pipeline()
        if self._asked.info is not None:
            await self._ask_traffic(self._asked.info)

    async def _ask_pipeline(self) -> bool:
        """Return whether the switch is, or may be, the device that it is asked as."""
        request = _Get(device_id=self._switch.device_id, response_type=_Get.P4INFO_AND_COOKIE)
        tried = True
        try:
            reply = await self._stub.GetForwardingPipelineConfig(request, timeout=self._deadline_s)
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.NOT_FOUND:
                await self._find_other_device(_details(error))
                return False
            if error.code() != grpc.StatusCode.FAILED_PRECONDITION:  # which is: no pipeline yet
                raise
            tried = False
        else:
            if reply.config.HasField("cookie"):
                self._asked.cookie = reply.config.cookie.cookie
            if reply.config.p4info.tables:
                self._asked.info = reply.config.p4info
        # A switch that has no such device as nobody has is itself the device that it was asked as.
        nothing = self._asked.cookie is None and self._asked.info is None
        if nothing and await self._has_pipeline(_NOBODY) is False:
            self._asked.any_device = True
            await self._find_device(tried=tried)
        return True

    async def _find_other_device(self, details: str) -> None:
        """Find out which device a switch is that is not ours, as ``details`` say."""
        there = await self._ask_likely()
        self._differs(f"NOT_FOUND ({details})", [device for device, has in there if has is not None])

    async def _find_device(self, *, tried: bool) -> None:
        """Find out whether a switch that does not mind being asked as any device is another.

        ``tried``: it answers as bmv2 does for a device that it was to push to and could not; a Read ends it.
        """
        found = [device for device, has in await self._ask_likely() if has]
        ours = self._switch.device_id
        if found:
            there = ", ".join(map(str, found))
            self._differs(f"device {ours} has no pipeline, but there is one in device {there}", found)
        elif tried:
            what = f"a push to device {ours} has failed: it is another device, or the program was no good"
            self._differs(what, [], ", and start the switch anew")

    async def _ask_likely(self) -> list[tuple[int, bool | None]]:
        """Return each of the likely devices, and what `_has_pipeline` says of it."""
        there = await asyncio.gather(*(self._has_pipeline(device) for device in _LIKELY))
        return list(zip(_LIKELY, there, strict=True))

    def _differs(self, what: str, devices: Sequence[int], more: str = "") -> None:
        """Say that the switch is another device than it is thought to be: one of ``devices``."""
        ours = self._switch.device_id
        if 0 in devices:
            mend = f"start it with --device-id {ours}: ids are from 1 on"
        else:
            right = " or ".join(map(str, devices)) or "the switch's own"
            mend = f"switches.device_id is {ours}; set it to {right}{more}"
        self._asked.said.append(Finding(self._switch.name, "device", what, mend))

    async def _has_pipeline(self, device: int) -> bool | None:
        """Return whether ``device`` has a pipeline; None where the switch answers something else."""
        request = _Get(device_id=device, response_type=_Get.COOKIE_ONLY)
        try:
            reply = await self._stub.GetForwardingPipelineConfig(request, timeout=self._deadline_s)
        except grpc.aio.AioRpcError as error:
            return False if error.code() == grpc.StatusCode.FAILED_PRECONDITION else None
        return reply.config.HasField("cookie")

    async def _ask_traffic(self, info: p4i.P4Info) -> None:
        ids = [counter.preamble.id for counter in info.counters if counter.preamble.alias in _PORT_COUNTERS]
        if not ids:
            return
        entities = [p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=number)) for number in ids]
        request = p4r.ReadRequest(device_id=self._switch.device_id, entities=entities)
        traffic: dict[int, int] = {}
        async for reply in self._stub.Read(request, timeout=self._deadline_s):
            for entity in reply.entities:
                port, packets = entity.counter_entry.index.index, entity.counter_entry.data.packet_count
                if packets:
                    traffic[port] = traffic.get(port, 0) + packets
        self._asked.traffic = traffic


def _details(error: grpc.aio.AioRpcError) -> str:
    """Return what came with ``error``, on one line."""
    return " ".join((error.details() or "no reason given").split())


def _unanswered(switch: SwitchSection, error: grpc.aio.AioRpcError, deadline_s: float) -> Finding:
    details = _details(error)
    match error.code():
        case grpc.StatusCode.UNAVAILABLE:
            mend = "start it, or mend switches.address"
            if switch.ca is not None or "handshake" in details.lower() or "socket closed" in details.lower():
                mend += "; and where it is TLS: switches.ca, cert, key and server_name"
            return Finding(switch.name, "connection", f"{switch.address} cannot be reached ({details})", mend)
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            what = f"{switch.address} gave no answer in {deadline_s:g} s"
            return Finding(switch.name, "connection", what, "see why it hangs")
        case grpc.StatusCode.UNIMPLEMENTED:
            what = f"{switch.address} is a gRPC server without P4Runtime ({details})"
            return Finding(switch.name, "connection", what, "set switches.address to the switch's P4Runtime")
        case code:
            mend = f"see the switch's log, and that switches.device_id = {switch.device_id} is its own"
            return Finding(switch.name, "device", f"{code.name} ({details})", mend)


async def _ask_gnmi(
    switch: SwitchSection, channel: grpc.aio.Channel, asked: Asked, deadline_s: float
) -> None:
    """Ask gNMI, which Stratum serves beside P4Runtime, for ports and queues; many switches have none."""
    client = GNMIClient(switch.address)
    await client.open(channel=channel)
    try:
        async with asyncio.timeout(deadline_s):
            ports = {int(update.value) for update in await client.get(_PORTS)}
            queues = {int(update.value) for update in await client.get(_QUEUES)}
    except TimeoutError:
        what = f"gNMI gave no answer in {deadline_s:g} s: what it knows of ports and queues was not seen"
        asked.said.append(Note(switch.name, "port map", what))
        return
    except (GNMIClientError, TypeError, ValueError):
        return
    finally:
        await client.close()
    if queues:
        asked.queues = frozenset(queues)
    missing = sorted(set(switch.ports) - ports)
    if ports and missing:
        listed = ", ".join(map(str, missing))
        asked.said.append(
            Note(switch.name, "port map", f"gNMI has no interface with ifindex {listed}, which ports has")
        )
