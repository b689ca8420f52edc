"""The device behind the service: its program, running and saved, its clients, and what flows between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import structlog
from finsy.proto import p4i, p4r
from grpc import StatusCode

from softswitch.p4runtime import digests, entities, reconcile
from softswitch.p4runtime.arbitration import Arbitration
from softswitch.p4runtime.errors import P4Error, invalid
from softswitch.p4runtime.learner import Batch
from softswitch.p4runtime.packetio import ControllerHeader, stream_error
from softswitch.p4runtime.program import Program, realize
from softswitch.p4runtime.session import Session
from softswitch.pipeline import Pipeline

_log = structlog.get_logger(__name__)

_NO_HEADER = ControllerHeader(p4i.ControllerPacketMetadata())
_Set = p4r.SetForwardingPipelineConfigRequest
_Get = p4r.GetForwardingPipelineConfigRequest


class Forwarding(Protocol):
    """The packet path, as the device drives it."""

    cpu_port: int
    queues: int

    def load(self, pipeline: Pipeline) -> None:
        """Run ``pipeline`` from the next packet on."""

    def inject(self, packet: bytes) -> None:
        """Process ``packet`` as if it had come in on the CPU port, after what was injected before."""

    def now_us(self) -> int:
        """Return the switch's clock: microseconds since it started."""

    def ports_down(self) -> frozenset[int]:
        """Return the ports whose link is down now."""


class Device:
    """One P4Runtime device. Methods raise P4Error; they may be called from any thread."""

    def __init__(self, device_id: int, forwarding: Forwarding) -> None:
        self.arbitration = Arbitration(device_id)
        self._forwarding = forwarding
        self._running: Program | None = None
        self._saved: Program | None = None
        self._ports_down: frozenset[int] = frozenset()

    @property
    def running(self) -> Program | None:
        """The program that packets go through; None before the first pipeline push."""
        return self._running

    def set_config(self, request: p4r.SetForwardingPipelineConfigRequest) -> None:
        """Carry out a SetForwardingPipelineConfig; a config that cannot be realized changes nothing."""
        with self.arbitration.write_lock:
            role = self.arbitration.authorize(request)
            if not role.can_push_pipeline:
                raise P4Error(StatusCode.PERMISSION_DENIED, "the client's role may not push a pipeline")
            self._set_config(request)

    def get_config(
        self, request: p4r.GetForwardingPipelineConfigRequest
    ) -> p4r.ForwardingPipelineConfig | None:
        """Return the parts of the config that ``request`` asks for; None when there is no config yet."""
        self.arbitration.check_device(request.device_id)
        program = self._saved or self._running
        if program is None:
            return None
        answer = p4r.ForwardingPipelineConfig()
        if program.config.HasField("cookie"):
            answer.cookie.CopyFrom(program.config.cookie)
        if request.response_type in (_Get.ALL, _Get.P4INFO_AND_COOKIE):
            answer.p4info.CopyFrom(program.config.p4info)
        if request.response_type in (_Get.ALL, _Get.DEVICE_CONFIG_AND_COOKIE):
            answer.p4_device_config = program.config.p4_device_config
        return answer

    def write(self, request: p4r.WriteRequest) -> list[P4Error | None]:
        """Apply every update of a batch, in order, and return what each came to (None: done)."""
        with self.arbitration.write_lock:
            role = self.arbitration.authorize(request)
            program = self._program()
            if request.atomicity != p4r.WriteRequest.CONTINUE_ON_ERROR:
                raise P4Error(StatusCode.UNIMPLEMENTED, "batches are carried out with CONTINUE_ON_ERROR only")
            now_us, cpu_port = self._forwarding.now_us(), self._forwarding.cpu_port
            results: list[P4Error | None] = []
            for update in request.updates:
                try:
                    entities.write(program, update, role, now_us=now_us, cpu_port=cpu_port)
                    results.append(None)
                except P4Error as error:
                    results.append(error)
            return results

    def read(self, request: p4r.ReadRequest) -> Iterator[Iterator[p4r.Entity]]:
        """Return an iterator of entities for each request of a batch; iterating may raise P4Error."""
        self.arbitration.check_device(request.device_id)
        program = self._program()
        role = self.arbitration.role_config(request.role)
        now_us = self._forwarding.now_us()
        return (entities.read(program, entity, role, now_us) for entity in request.entities)

    def handle(self, client: Session, message: p4r.StreamMessageRequest) -> None:
        """Handle what a client sent on its stream. A P4Error has to end the stream."""
        match message.WhichOneof("update"):
            case "arbitration":
                self.arbitration.update(client, message.arbitration)
            case "packet":
                self._packet_out(client, message.packet)
            case "digest_ack":
                self._digest_ack(client, message.digest_ack)
            case kind:
                error = p4r.StreamError(
                    canonical_code=StatusCode.UNIMPLEMENTED.value[0],
                    message=f"stream messages of kind {kind}",
                    other=p4r.StreamOtherError(other=message.other),
                )
                client.send(p4r.StreamMessageResponse(error=error))

    def packet_in(self, packet: bytes) -> None:
        """Send what the pipeline put out of the CPU port to every role's primary. Never blocks."""
        program = self._running
        header = program.info.headers.get("packet_in", _NO_HEADER) if program else _NO_HEADER
        if len(packet) < header.size:
            _log.warning("packet to the CPU port is shorter than its header", length=len(packet))
            return
        for client, role in self.arbitration.primaries:
            if role.receives_packet_ins:
                client.packet_in(packet, header, role)

    def send_digest(self, program: Program, digest_id: int, batch: Batch) -> None:
        """Send a list of digest messages to every primary whose role has that digest."""
        self.notify(digest_id, digests.encode_list(program, digest_id, batch))

    def notify(self, p4_id: int, message: p4r.StreamMessageResponse) -> None:
        """Send a notification about the object ``p4_id`` to every primary whose role has it. Never blocks."""
        for client, role in self.arbitration.primaries:
            if role.may_access(p4_id):
                client.notify(message)

    def set_ports_down(self, ports: frozenset[int]) -> None:
        """Take members that watch one of these ports out of their action profile groups, others back in."""
        if ports == self._ports_down:
            return
        _log.info("links have changed", down=sorted(ports))
        with self.arbitration.write_lock:
            self._ports_down = ports
            for program in (self._running, self._saved):
                if program is not None:
                    self._apply_ports_down(program)

    def _apply_ports_down(self, program: Program) -> None:
        for profile in program.pipeline.action_profiles.values():
            profile.set_ports_down(self._ports_down)

    def _program(self) -> Program:
        program = self._saved or self._running
        if program is None:
            raise P4Error(StatusCode.FAILED_PRECONDITION, "No forwarding pipeline config set for this device")
        return program

    def _set_config(self, request: p4r.SetForwardingPipelineConfigRequest) -> None:
        if request.action == _Set.COMMIT:
            if request.HasField("config"):
                raise invalid("COMMIT takes no config; it realizes the one saved before")
            if self._saved is None:
                raise P4Error(StatusCode.NOT_FOUND, "there is no saved config to COMMIT")
            self._commit(self._saved)
            return
        if request.action not in (
            _Set.VERIFY,
            _Set.VERIFY_AND_SAVE,
            _Set.VERIFY_AND_COMMIT,
            _Set.RECONCILE_AND_COMMIT,
        ):
            raise invalid("the request must have an action")
        if not request.HasField("config"):
            raise invalid("the request must have a config")
        program = realize(request.config, self._forwarding.queues)
        self._apply_ports_down(program)
        if request.action == _Set.VERIFY_AND_SAVE:
            self._saved = program
        elif request.action == _Set.VERIFY_AND_COMMIT:
            self._commit(program)
        elif request.action == _Set.RECONCILE_AND_COMMIT:
            if self._running is not None:
                reconcile.carry_over(
                    self._running,
                    program,
                    now_us=self._forwarding.now_us(),
                    cpu_port=self._forwarding.cpu_port,
                )
            self._commit(program)

    def _commit(self, program: Program) -> None:
        def on_digest(name: str, values: tuple[int, ...]) -> None:
            digest_id = program.info.digest_ids.get(name, 0)
            learner = program.digests.get(digest_id)
            if learner is not None:
                batch = learner.add(values, self._forwarding.now_us() * 1000)
                if batch is not None:
                    self.send_digest(program, digest_id, batch)

        program.pipeline.on_digest = on_digest
        self._forwarding.load(program.pipeline)
        self._running, self._saved = program, None
        name = program.config.p4info.pkg_info.name or "unnamed"
        _log.info("program runs", program=name, cookie=f"{program.config.cookie.cookie:#x}")

    def _packet_out(self, client: Session, message: p4r.PacketOut) -> None:
        try:
            if not self.arbitration.is_primary(client):
                raise P4Error(StatusCode.PERMISSION_DENIED, "only a primary may send packets")
            program = self._running
            if program is None:
                raise P4Error(
                    StatusCode.FAILED_PRECONDITION, "No forwarding pipeline config set for this device"
                )
            header = program.info.headers.get("packet_out", _NO_HEADER)
            self._forwarding.inject(header.pack(message.metadata) + message.payload)
        except P4Error as error:
            client.notify(stream_error(error, message))

    def _digest_ack(self, client: Session, message: p4r.DigestListAck) -> None:
        try:
            if not self.arbitration.is_primary(client):
                raise P4Error(StatusCode.PERMISSION_DENIED, "only a primary may acknowledge digests")
            if self._running is not None:
                digests.acknowledge(self._running, message)
        except P4Error as error:
            details = p4r.DigestListAckError(digest_list_ack=message)
            stream_message = p4r.StreamError(
                canonical_code=error.code.value[0], message=error.message, digest_list_ack=details
            )
            client.notify(p4r.StreamMessageResponse(error=stream_message))
