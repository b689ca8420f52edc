"""One controller's stream: connect, say hello, report, probe when asked; again and again."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

import grpc
import structlog
from leveller_proto import agent_pb2 as pb
from leveller_proto import agent_pb2_grpc

from hostagent.config import AgentTlsSection
from hostagent.flows.connection import FiveTuple
from hostagent.probe.packet import ProbeSpec
from hostagent.state import HostState
from leveller.errors import UserError

PROTOCOL_VERSION = 1

CONNECT_S = 3.0
"""How long one attempt to connect may take."""

FIRST_RETRY_S, LAST_RETRY_S = 0.1, 5.0
"""Wait before connecting again: doubled at each failure, up to the last, with some jitter."""

SHORTEST_INTERVAL_S = 0.01

HEARTBEAT_S = 1.0
"""Longest time between two Reports where the controller asks for no shorter one."""

MAX_ANSWERS = 64
"""Answers to probe requests that wait for the stream; with more waiting, no further request is read."""

_OPTIONS = (
    # A sub-channel shared with an earlier attempt would bring its back-off along.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
    # A controller whose machine is gone says nothing; find out.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
)

Prober = Callable[[ProbeSpec], Awaitable[str]]
"""Sends a probe; returns why it could not, or an empty string."""


Answers = asyncio.Queue[pb.ProbeSent]


class ProtocolError(Exception):
    """The peer is no controller of ours."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the agent is: what Hello says. ``addresses`` are 4 or 16 bytes each, as text."""

    host: str
    addresses: tuple[str, ...]
    version: str
    boot_id: str


class ControllerSession:
    """Keeps a stream to the controller at ``target`` and reports ``state`` on it.

    What has changed is reported at once where it is urgent, else within ``interval_s``; when nothing has,
    there is a Report every HEARTBEAT_S, or as often as the controller asks, to say so. Nothing is queued: a
    Report is made of ``state`` when the stream takes it, so a controller that reads slowly gets fewer, larger
    Reports, and delays nothing but its own stream.
    """

    def __init__(
        self,
        target: str,
        identity: Identity,
        state: HostState,
        prober: Prober,
        interval_s: float,
        tls: AgentTlsSection | None = None,
    ) -> None:
        """``interval_s`` is the longest time that a change waits for a Report; no ``tls``: plain text."""
        self.target = target
        self._tls = tls
        self._identity = identity
        self._state = state
        self._prober = prober
        self._interval_s = interval_s
        self._heartbeat_s = HEARTBEAT_S
        self._urgent = asyncio.Event()
        self._changed = asyncio.Event()
        self._renewed = asyncio.Event()
        self._log = structlog.get_logger().bind(controller=target)
        self._welcomed = False
        self._unsaid: set[IPv4Address | IPv6Address] = set()

    def wake(self) -> None:
        """Have a Report sent at once."""
        self._urgent.set()
        self._changed.set()

    def note(self) -> None:
        """Have a Report sent soon."""
        self._changed.set()

    def introduce(self, identity: Identity) -> None:
        """Say Hello anew, as ``identity``."""
        self._identity = identity
        self._renewed.set()

    async def run(self) -> None:
        """Serve the controller until cancelled. Whatever the peer does, the answer is to connect again."""
        retry_s, told = FIRST_RETRY_S, False
        while True:
            self._welcomed = False
            try:
                reason = await self._connect()
            except (ProtocolError, TimeoutError, UserError) as error:
                reason = str(error) or "no connection"
            except grpc.aio.AioRpcError as error:
                reason = f"{error.code().name}: {error.details()}{self._hint(error.details() or '')}"
            if self._welcomed:
                retry_s, told = FIRST_RETRY_S, False
            if not told:
                self._log.warning("no controller", reason=reason, retry="with back-off")
                told = True
            await asyncio.sleep(retry_s * random.uniform(0.75, 1.25))  # noqa: S311 (jitter, not a secret)
            retry_s = min(2 * retry_s, LAST_RETRY_S)

    async def _connect(self) -> str:
        """Serve one stream; return why it ended."""
        self._renewed.clear()
        async with self._channel() as channel:
            try:
                await asyncio.wait_for(channel.channel_ready(), CONNECT_S)
            except TimeoutError:
                # Only a call that fails says why.
                if channel.get_state() is not grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                    raise
            self._heartbeat_s = HEARTBEAT_S
            answers: Answers = asyncio.Queue(MAX_ANSWERS)
            call = agent_pb2_grpc.AgentsStub(channel).Connect(self._messages(answers))
            reader = asyncio.create_task(self._read(call, answers))
            renewed = asyncio.create_task(self._renewed.wait())
            try:
                done, _ = await asyncio.wait([reader, renewed], return_when=asyncio.FIRST_COMPLETED)
            finally:
                reader.cancel()
                renewed.cancel()
                call.cancel()
            # gRPC cancels who reads a call that the peer has cancelled: its end, not ours, so ask the task.
            if reader in done and not reader.cancelled():
                reader.result()
            return "it closed the stream" if reader in done else "this host has other addresses now"

    def _hint(self, details: str) -> str:
        """Say what else to look at where the peer has hung up without a word."""
        if "Socket closed" not in details:
            return ""
        return "; where it wants TLS, give [agent.tls]" if self._tls is None else "; see that it knows our CA"

    def _channel(self) -> grpc.aio.Channel:
        """Return a new channel; the PEM files are read anew, as certificates are replaced now and then.

        Raises UserError for files that cannot be used any more.
        """
        if self._tls is None:
            return grpc.aio.insecure_channel(self.target, options=_OPTIONS)
        names = self._tls.check("agent.tls", "client")
        outside = set(map(ip_address, self._identity.addresses)) - names.addresses
        if outside and outside != self._unsaid:
            self._log.warning(
                "the certificate does not have all addresses; controllers believe nothing of these",
                addresses=", ".join(sorted(map(str, outside))),
            )
        self._unsaid = outside
        credentials = grpc.ssl_channel_credentials(
            self._tls.ca.read_bytes(), self._tls.key.read_bytes(), self._tls.cert.read_bytes()
        )
        options: list[tuple[str, int | str]] = list(_OPTIONS)
        if self._tls.server_name is not None:
            options.append(("grpc.ssl_target_name_override", self._tls.server_name))
        return grpc.aio.secure_channel(self.target, credentials, options=options)

    async def _read(self, call: AsyncIterable[pb.ControllerMessage], answers: Answers) -> None:
        async for message in call:
            match message.WhichOneof("body"):
                case "welcome":
                    self._welcome(message.welcome)
                case "probe":
                    # One at a time: a controller that asks faster than we send is held back by flow control.
                    error = await self._prober(_spec(message.probe))
                    await answers.put(pb.ProbeSent(probe=message.probe.probe, error=error))
                    self.wake()

    def _welcome(self, welcome: pb.Welcome) -> None:
        if welcome.protocol_version != PROTOCOL_VERSION:
            raise ProtocolError(f"it speaks protocol {welcome.protocol_version}, not {PROTOCOL_VERSION}")
        if welcome.report_interval_ns:
            asked_s = max(SHORTEST_INTERVAL_S, welcome.report_interval_ns / 1e9)
            self._heartbeat_s = min(HEARTBEAT_S, asked_s)
            self.wake()  # the wait under way may be longer
        self._welcomed = True
        self._log.info("controller connected", name=welcome.controller)

    async def _messages(self, answers: Answers) -> AsyncIterator[pb.AgentMessage]:
        """Yield what to send; gRPC takes the next message when the stream has room for it."""
        yield pb.AgentMessage(
            hello=pb.Hello(
                protocol_version=PROTOCOL_VERSION,
                host=self._identity.host,
                addresses=self._identity.addresses,
                version=self._identity.version,
                boot_id=self._identity.boot_id,
            )
        )
        since, sequence = None, 0
        while True:
            self._urgent.clear()
            self._changed.clear()
            while not answers.empty():
                yield pb.AgentMessage(probe_sent=answers.get_nowait())
            report = self._state.report(since, sequence, time.monotonic_ns())
            since, sequence = self._state.version, sequence + 1
            sent_s = time.monotonic()
            yield pb.AgentMessage(report=report)
            await _wait(self._changed, sent_s + self._heartbeat_s)
            await _wait(self._urgent, sent_s + min(self._interval_s, self._heartbeat_s))


async def _wait(event: asyncio.Event, until_s: float) -> None:
    """Wait for ``event``, but no longer than until monotonic time ``until_s``."""
    if (left_s := until_s - time.monotonic()) > 0:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left_s):
                await event.wait()


def _spec(request: pb.ProbeRequest) -> ProbeSpec:
    asked = request.tuple
    flow = FiveTuple(
        asked.source,
        asked.destination,
        asked.protocol,
        asked.source_port,
        asked.destination_port,
        asked.destination_qp,
    )
    return ProbeSpec(flow, request.dscp, request.instructions, request.max_hops, request.domain)
