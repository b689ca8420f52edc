"""One P4Runtime session with one switch: channel, stream and arbitration, RPCs with deadlines.

The messages, the pipeline's description and the reading of errors are finsy's. The channel is not: finsy's
takes no message over gRPC's 4 MB (bmv2 answers a read of 50,000 flows with one of 4.3 MB), and no status
over 64 KiB, and its Switch waits for an unreachable or silent switch without a deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

import grpc
from finsy import P4Schema
from finsy.grpcutil import GRPCStatusCode
from finsy.p4client import P4ClientError, P4Error
from finsy.proto import U128, p4r, p4r_grpc

from controlplane.southbound import roles
from controlplane.southbound.arbitration import Election
from controlplane.southbound.device import OnPacket
from controlplane.southbound.diff import Change
from controlplane.southbound.encode import Encoder
from controlplane.southbound.errors import LostPrimacyError, OverflowedError, SwitchError
from controlplane.southbound.tables import Call, Key
from controlplane.southbound.target import Target

_BULK_DEADLINE_S = 30.0
"""For what takes a switch longer: a push compiles a whole program, a read may be of all its flows."""


class Connection:
    """The `controlplane.southbound.device.Device` that speaks P4Runtime."""

    def __init__(
        self, target: Target, schema: P4Schema, encoder: Encoder, election: Election, deadline_s: float
    ) -> None:
        """Open the channel. Raises UserError where the target's certificates cannot be read."""
        self._device_id = target.device_id
        self._role = target.role or ""
        self._schema = schema
        self._encoder = encoder
        self._election = election
        self._deadline_s = deadline_s
        self._channel = target.channel()
        self._stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._write = self._channel.unary_unary(
            "/p4.v1.P4Runtime/Write",
            request_serializer=bytes,  # it comes serialised
            response_deserializer=p4r.WriteResponse.FromString,
        )
        self._patience: set[asyncio.Timeout] = set()
        """That of each Write under way."""
        self._stream = self._stub.StreamChannel()  # type: ignore[call-arg]  # optional, whatever its stubs say

    @property
    def primary(self) -> bool:
        """Whether this controller is the switch's primary."""
        return self._election.primary

    async def open(self) -> None:
        """Connect and arbitrate until the switch has said whether this is its primary."""
        with self._errors("connecting"):
            try:
                async with asyncio.timeout(self._deadline_s):
                    await self._assert(self._election.begin())
                    settled = False
                    while not settled:
                        message = await self._receive()
                        if message.WhichOneof("update") == "arbitration":
                            settled = await self._arbitrated(message.arbitration)
            except TimeoutError:
                raise SwitchError(f"connecting: no answer in {self._deadline_s:g} s") from None

    async def close(self) -> None:
        """Close the channel; RPCs under way end with an error."""
        self._election.primary = False
        await self._channel.close(None)

    async def listen(self, on_role: Callable[[], None], on_packet: OnPacket) -> None:
        """Read the stream for as long as it lives; always ends with SwitchError.

        ``on_role`` is called when this controller becomes the primary or a backup.
        """
        with self._errors("the stream"):
            while True:
                message = await self._receive()
                match message.WhichOneof("update"):
                    case "arbitration":
                        before = self._election.primary
                        await self._arbitrated(message.arbitration)
                        if self._election.primary != before:
                            on_role()
                    case "packet":
                        on_packet(message.packet.payload, None)
                    case _:
                        pass  # digests and idle timeouts are not asked for; stream errors concern packet-outs

    async def ensure_pipeline(self) -> bool:
        """Push the program unless the switch runs it, by its cookie; return whether it was pushed.

        A push wipes the switch's tables, so nothing but another cookie makes one; and a controller with a
        role of its own leaves it to the one that has the default role.
        """
        config = self._schema.get_pipeline_config()
        with self._errors("reading the pipeline's cookie"):
            try:
                reply = await self._stub.GetForwardingPipelineConfig(
                    p4r.GetForwardingPipelineConfigRequest(
                        device_id=self._device_id,
                        response_type=p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY,
                    ),
                    timeout=self._deadline_s,
                )
            except grpc.aio.AioRpcError as error:
                if error.code() != grpc.StatusCode.FAILED_PRECONDITION:  # which is: no pipeline yet
                    raise
            else:
                if reply.config.HasField("cookie") and reply.config.cookie.cookie == config.cookie.cookie:
                    return False
        if self._role:
            raise SwitchError(
                f"the switch does not run our program yet, and the role {self._role!r} is not to push it"
            )
        with self._errors(f"pushing the pipeline to device {self._device_id}"):
            await self._stub.SetForwardingPipelineConfig(
                p4r.SetForwardingPipelineConfigRequest(
                    device_id=self._device_id,
                    election_id=U128.encode(self._election.id),
                    action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
                    config=config,
                ),
                timeout=_BULK_DEADLINE_S,
            )
        return True

    def prepare(self, changes: Sequence[Change]) -> list[bytes]:
        """Return ``changes`` as messages."""
        return list(map(self._encoder.encoded, changes))

    async def rows(
        self, tables: Collection[str] | None = None, deadline_s: float | None = None
    ) -> AsyncIterator[tuple[str, Key, Call]]:
        """Yield (table, key, call) of what is in ``tables``, or in all of the contract's."""
        wanted = self._encoder.read_all() if tables is None else [self._encoder.read(name) for name in tables]
        async for entity in self.read(wanted, deadline_s or _BULK_DEADLINE_S):
            row = self._encoder.decode(entity.table_entry)
            if row is not None:
                yield row

    async def write(self, updates: Sequence[bytes]) -> dict[int, P4Error]:
        """Write one batch of updates from ``Encoder.encoded``.

        Returns position -> error of those that failed; the others are in force.
        """
        head = p4r.WriteRequest(
            device_id=self._device_id, role=self._role, election_id=U128.encode(self._election.id)
        )
        with self._errors("a write"):
            try:
                await self._answered(b"".join((head.SerializeToString(), *updates)))
            except grpc.aio.AioRpcError as error:
                status = P4ClientError(error, "Write")
                if status.details:
                    return status.details
                if status.code == GRPCStatusCode.RESOURCE_EXHAUSTED:
                    if len(updates) == 1:  # it can be nothing but that update's own
                        return {0: P4Error(status.code, status.message, "", 0)}
                    raise OverflowedError(f"the status of {len(updates)} updates: {status.message}") from None
                raise
        return {}

    async def _answered(self, request: bytes) -> None:
        """Send a Write and await its answer.

        The deadline counts from the last answer to any: a switch may take what is under way one by one.
        """
        try:
            async with asyncio.timeout(self._deadline_s) as patience:
                self._patience.add(patience)
                try:
                    await self._write(request)
                finally:
                    self._patience.discard(patience)
                    if not patience.expired():
                        self._be_patient_again()
        except TimeoutError:
            raise SwitchError(f"a write: no answer in {self._deadline_s:g} s") from None

    def _be_patient_again(self) -> None:
        until = asyncio.get_running_loop().time() + self._deadline_s
        for patience in self._patience:
            if not patience.expired():
                patience.reschedule(until)

    async def read(
        self, entities: Sequence[p4r.Entity], deadline_s: float = _BULK_DEADLINE_S
    ) -> AsyncIterator[p4r.Entity]:
        """Read; the switch may answer in several messages."""
        with self._errors("a read"):
            request = p4r.ReadRequest(device_id=self._device_id, role=self._role, entities=entities)
            async for reply in self._stub.Read(request, timeout=deadline_s):
                for entity in reply.entities:
                    yield entity

    async def _receive(self) -> p4r.StreamMessageResponse:
        message = await self._stream.read()
        if not isinstance(message, p4r.StreamMessageResponse):
            raise SwitchError("the switch ended the stream")
        return message

    async def _assert(self, election_id: int) -> None:
        arbitration = p4r.MasterArbitrationUpdate(
            device_id=self._device_id, election_id=U128.encode(election_id)
        )
        if self._role:
            arbitration.role.CopyFrom(roles.message(self._role, self._schema.p4info))
        await self._stream.write(p4r.StreamMessageRequest(arbitration=arbitration))

    async def _arbitrated(self, message: p4r.MasterArbitrationUpdate) -> bool:
        """Follow an arbitration message; return whether it settled who we are."""
        if message.role.name != self._role:
            raise SwitchError(f"the switch has no roles: it takes {self._role!r} for the default one")
        next_id = self._election.update(message)
        if next_id is not None:
            await self._assert(next_id)
        return next_id is None

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        """Turn whatever the transport raises into a SwitchError that says what failed."""
        try:
            yield
        except grpc.aio.AioRpcError as error:
            raise self._explain(doing, error) from None
        except (asyncio.InvalidStateError, grpc.aio.UsageError) as error:  # the RPC or its channel has ended
            raise SwitchError(f"{doing}: {error}") from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise SwitchError(f"{doing}: the session was closed") from None  # which cancels its RPCs

    def _explain(self, doing: str, error: grpc.aio.AioRpcError) -> SwitchError:
        status = P4ClientError(error, doing)
        if status.is_election_id_used:
            return SwitchError(f"{doing}: another client has election id {self._election.id:#x}")
        match status.code:
            case GRPCStatusCode.PERMISSION_DENIED:
                return LostPrimacyError(f"{doing}: {status.message}")
            case GRPCStatusCode.UNAVAILABLE | GRPCStatusCode.CANCELLED:
                return SwitchError(f"{doing}: not reachable ({status.message})")
            case GRPCStatusCode.DEADLINE_EXCEEDED:
                return SwitchError(f"{doing}: no answer in time ({status.message})")
            case code:
                return SwitchError(f"{doing}: {code.name} ({status.message or 'no reason given'})")
