"""The gRPC server that host agents connect to: one bidirectional stream each.

Each stream is a task of its own with a bounded queue towards its agent, so that an agent that is slow, silent
or gone costs nobody else anything: what does not fit its queue is dropped and counted, what it sends too fast
waits in its own connection (HTTP/2 flow control), however many streams it opens for it, and a peer that stops
answering pings is cut off. What an agent may say is bound to the addresses it said Hello with, and an address
belongs to one host at a time. By TLS, every agent shows a certificate, and host and addresses must be in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import grpc
import structlog
from leveller_proto import agent_pb2, agent_pb2_grpc

from controlplane import certificates
from controlplane.pace import Pace
from controlplane.reports import HostAddress, HostReport, decode, decode_addresses, size
from leveller import unix_sockets
from leveller.errors import UserError
from leveller.tls import Names, TlsSection

PROTOCOL_VERSION = 1
HELLO_TIMEOUT_S = 5.0
CONNECTION_TIMEOUT_S = 5.0
"""A connection that has no stream for so long, or speaks no HTTP/2, is cut: it holds a file descriptor."""
QUEUE_LENGTH = 1024
"""Messages that wait for one agent at most."""
MIN_GAP_S = 0.001
"""An agent's messages are taken no faster than one in so long, on the average over `BURST_S`."""
ITEM_GAP_S = 0.0001
"""... and the things in them (jobs, flows, durations) no faster than this: large reports cost as much."""
BURST_S = 1.0
HELLO_GAP_S = 0.05
"""... and a Hello costs as much of that: a handshake, a stream, and a walk through all hosts."""
LINE_GAP_S, LINE_BURST_S = 10.0, 60.0
"""The log says no more often than that, on the average, that a host's agent has come or gone."""
MAX_HOSTS = 16384
MAX_HOST_NAME = 256
MAX_VERSION = 64

_OPTIONS = (
    ("grpc.so_reuseport", 0),  # a second controller on the same port is an error, not a lottery
    ("grpc.max_receive_message_length", 4 << 20),
    ("grpc.keepalive_time_ms", 5000),
    ("grpc.keepalive_timeout_ms", 5000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 1000),
    ("grpc.http2.max_ping_strikes", 0),
)

_Messages = asyncio.Queue[agent_pb2.ControllerMessage]
_Context = grpc.aio.ServicerContext[agent_pb2.AgentMessage, agent_pb2.ControllerMessage]


@dataclass(frozen=True)
class Handlers:
    """What the server calls, in its event loop. None of them may block."""

    on_report: Callable[[str, HostReport, int, list[str]], None]
    """(host, report, arrival in nanoseconds, why parts of it were left out)"""
    on_probe_sent: Callable[[str, int, str], None]
    """(host, probe number, error; empty where it was sent)"""
    on_refused: Callable[[str, str], None]
    """(host or peer, why): something it said cannot be used"""


@dataclass(eq=False)
class _Account:
    """What a host has cost of late, over all its streams."""

    words: Pace = field(default_factory=lambda: Pace(BURST_S))
    lines: Pace = field(default_factory=lambda: Pace(LINE_BURST_S))
    unsaid: int = 0
    """Lines that were too many."""


@dataclass(eq=False)
class _Stream:
    """One agent's open stream."""

    host: str
    account: _Account
    addresses: frozenset[HostAddress]
    version: str
    task: asyncio.Task[None] | None = None
    messages: _Messages = field(default_factory=lambda: asyncio.Queue(QUEUE_LENGTH))


@dataclass(frozen=True)
class Agent:
    """A connected agent, for the status page."""

    host: str
    addresses: tuple[str, ...]
    version: str
    authenticated: bool
    """Its certificate says that it is that host and has these addresses."""


class AgentServer(agent_pb2_grpc.AgentsServicer):
    """All agents' streams.

    ``name`` is the controller's, for Welcome; ``report_interval_ns`` the longest time between two reports
    that it asks for; ``clock_ns`` stamps arrivals. ``tls`` None: in plain text, and agents are believed who
    they say they are.
    """

    def __init__(
        self,
        name: str,
        handlers: Handlers,
        *,
        report_interval_ns: int = 0,
        tls: TlsSection | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._handlers = handlers
        self._tls = tls
        self._clock_ns = clock_ns
        self._welcome = agent_pb2.Welcome(
            protocol_version=PROTOCOL_VERSION, controller=name, report_interval_ns=report_interval_ns
        )
        self._streams: dict[str, _Stream] = {}
        self._accounts: OrderedDict[str, _Account] = OrderedDict()  # the latest last
        self._claims: dict[str, frozenset[HostAddress]] = {}
        self._known: set[str] = set()
        """Hosts that have reported and are not forgotten: their claims outlive their streams."""
        self._log = structlog.get_logger("controlplane.agents")

    @contextlib.asynccontextmanager
    async def serve(self, listen: str) -> AsyncIterator[str]:
        """Serve on ``listen``, ``HOST:PORT`` or ``unix:/PATH``; yield the address that it is really on.

        Raises UserError where the address cannot be listened on, or the certificates cannot be used.
        """
        host, _, port = listen.rpartition(":")
        credentials = certificates.server_credentials(self._tls) if self._tls else None
        timeout_ms = round(CONNECTION_TIMEOUT_S * 1e3)
        unused = (
            ("grpc.server_handshake_timeout_ms", timeout_ms),
            ("grpc.max_connection_idle_ms", timeout_ms),
        )
        server = grpc.aio.server(options=(*_OPTIONS, *unused))
        agent_pb2_grpc.add_AgentsServicer_to_server(self, server)
        try:
            # Tried by hand first: gRPC would not say why, but write lines of its own on stderr.
            if host == "unix":
                unix_sockets.check(listen)
            else:
                family = socket.AF_INET6 if ":" in host else socket.AF_INET
                socket.create_server((host.strip("[]"), int(port)), family=family).close()
            if credentials is not None:
                bound = server.add_secure_port(listen, credentials)
            else:
                bound = server.add_insecure_port(listen)
        except (OSError, RuntimeError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UserError(
                f"controller.listen = {listen} cannot be listened on ({reason})",
                "free that port or give another address",
            ) from None
        await server.start()
        if credentials is None and not _is_local(host.strip("[]")):
            self._log.warning(
                "agents are not authenticated: who reaches this address can speak for any host",
                listen=listen,
                mend=f"give [{certificates.WHERE}] cert, key and ca",
            )
        try:
            yield listen if host == "unix" else f"{host}:{bound}"
        finally:
            for stream in self._streams.values():
                if stream.task is not None:
                    stream.task.cancel()  # its call ends as if it had been its own idea
            await server.stop(grace=1.0)

    def ask_probe(self, host: str, request: agent_pb2.ProbeRequest) -> bool:
        """Ask ``host``'s agent for a probe. False: it is not connected, or too slow to take more."""
        stream = self._streams.get(host)
        if stream is None:
            return False
        try:
            stream.messages.put_nowait(agent_pb2.ControllerMessage(probe=request))
        except asyncio.QueueFull:
            return False
        return True

    def agents(self) -> list[Agent]:
        """Return the connected agents, by host."""
        return [
            Agent(host, tuple(sorted(map(str, stream.addresses))), stream.version, self._tls is not None)
            for host, stream in sorted(self._streams.items())
        ]

    def forget(self, host: str) -> None:
        """Free the addresses of ``host``; while it is connected, it keeps them."""
        self._known.discard(host)
        if host not in self._streams:
            self._claims.pop(host, None)

    async def Connect(  # noqa: N802
        self, request_iterator: AsyncIterator[agent_pb2.AgentMessage], context: _Context
    ) -> AsyncIterator[agent_pb2.ControllerMessage]:
        """Serve one agent's stream (the name is the protocol's)."""
        # Without its port, which is another each time: who tries again and again is one peer.
        peer = context.peer().rpartition(":")[0] or context.peer()
        names = certificates.names(context.auth_context()) if self._tls else None
        if names and names.hosts:
            peer = min(names.hosts)
        requests = aiter(request_iterator)
        try:
            async with asyncio.timeout(HELLO_TIMEOUT_S):
                first = await anext(requests)
        except (TimeoutError, StopAsyncIteration):
            await self._refuse(context, peer, grpc.StatusCode.DEADLINE_EXCEEDED, "no Hello came")
            return
        account = self._account(peer if names else first.hello.host[:MAX_HOST_NAME])
        if account.words.wait_s > HELLO_TIMEOUT_S:
            await self._refuse(context, peer, grpc.StatusCode.RESOURCE_EXHAUSTED, "it connects too often")
            return
        account.words.spend(HELLO_GAP_S)
        while wait_s := account.words.wait_s:  # noqa: ASYNC110 - no event tells of a time
            await asyncio.sleep(wait_s)  # and others of its streams may have spent more by then
        if first.WhichOneof("body") != "hello":
            await self._refuse(
                context, peer, grpc.StatusCode.INVALID_ARGUMENT, "the first message is no Hello"
            )
            return
        try:
            stream = self._admit(first.hello, names, account)
        except _AdmissionError as error:
            await self._refuse(context, peer, error.code, str(error))
            return
        task = stream.task = asyncio.create_task(self._receive(stream, requests))
        try:
            yield agent_pb2.ControllerMessage(welcome=self._welcome)
            async for message in _until_done(stream.messages, task):
                yield message
        finally:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled() and task.exception() is not None:
                self._say(account, "stream broke", host=stream.host, error=repr(task.exception()))
            if self._streams.get(stream.host) is stream:
                del self._streams[stream.host]
                if stream.host not in self._known:
                    del self._claims[stream.host]
                self._say(account, "agent gone", host=stream.host)

    def _account(self, who: str) -> _Account:
        """Return the account of a host, or a certificate's; of those that are too many the oldest goes."""
        account = self._accounts.setdefault(who, _Account())
        self._accounts.move_to_end(who)
        if len(self._accounts) > MAX_HOSTS:
            self._accounts.popitem(last=False)
        return account

    def _say(self, account: _Account, event: str, **more: object) -> None:
        """Log that something has become of an agent, unless there was too much of that."""
        if account.lines.wait_s:
            account.unsaid += 1
            return
        account.lines.spend(LINE_GAP_S)
        if account.unsaid:
            more["lines_left_out"] = account.unsaid
            account.unsaid = 0
        self._log.info(event, **more)

    def _admit(self, hello: agent_pb2.Hello, names: Names | None, account: _Account) -> _Stream:
        """Make a stream of a Hello, and claim its addresses. A host that is connected already is replaced.

        ``names``: whom its certificate is for, where it has one.
        """
        if hello.protocol_version != PROTOCOL_VERSION:
            raise _AdmissionError(
                grpc.StatusCode.FAILED_PRECONDITION,
                f"protocol version {hello.protocol_version}; this controller speaks {PROTOCOL_VERSION}",
            )
        host = hello.host
        if not (0 < len(host) <= MAX_HOST_NAME and host.isprintable()):
            raise _AdmissionError(grpc.StatusCode.INVALID_ARGUMENT, "a Hello without a host name")
        try:
            addresses = decode_addresses(hello.addresses)
        except ValueError as error:
            raise _AdmissionError(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from None
        if names is not None:
            host, addresses = self._certified(host, addresses, names)
        for other, claimed in self._claims.items():
            if other != host and addresses & claimed:
                taken = ", ".join(sorted(map(str, addresses & claimed)))
                raise _AdmissionError(grpc.StatusCode.ALREADY_EXISTS, f"{taken} belongs to host {other}")
        before = self._streams.get(host)
        if before is not None and before.addresses != addresses:
            raise _AdmissionError(
                grpc.StatusCode.ALREADY_EXISTS, f"host {host} is connected with other addresses"
            )
        if host not in self._claims and len(self._claims) >= MAX_HOSTS:
            raise _AdmissionError(grpc.StatusCode.RESOURCE_EXHAUSTED, f"there are {MAX_HOSTS} hosts already")
        if before is not None and before.task is not None:
            before.task.cancel()
        version = "".join(filter(str.isprintable, hello.version[:MAX_VERSION]))
        stream = self._streams[host] = _Stream(host, account, addresses, version)
        self._claims[host] = addresses
        self._say(account, "agent connected", host=host, addresses=sorted(map(str, addresses)))
        return stream

    def _certified(
        self, host: str, addresses: frozenset[HostAddress], names: Names
    ) -> tuple[str, frozenset[HostAddress]]:
        """Return the host as its certificate spells it, and those of ``addresses`` that it has.

        Of the others nothing will be believed.
        """
        spelled = names.host(host)
        if spelled is None:
            raise _AdmissionError(
                grpc.StatusCode.PERMISSION_DENIED,
                f"it claims to be host {host}, but its certificate is for {names}",
            )
        certified = addresses & names.addresses
        if outside := ", ".join(sorted(map(str, addresses - certified))):
            if not certified:
                raise _AdmissionError(
                    grpc.StatusCode.PERMISSION_DENIED, f"its certificate has none of its addresses, {outside}"
                )
            self._handlers.on_refused(spelled, f"it claims {outside}, which its certificate does not have")
        return spelled, certified

    async def _receive(self, stream: _Stream, requests: AsyncIterator[agent_pb2.AgentMessage]) -> None:
        """Take in what an agent sends until it stops."""
        reported = False
        words = stream.account.words
        async for message in requests:
            cost_s = MIN_GAP_S
            match message.WhichOneof("body"):
                case "report":
                    arrival_ns = self._clock_ns()
                    cost_s += size(message.report) * ITEM_GAP_S
                    if not reported and not message.report.full:
                        self._handlers.on_refused(stream.host, "the first report is not full")
                    else:
                        reported = True
                        self._known.add(stream.host)
                        report, refused = decode(message.report, stream.addresses)
                        self._handlers.on_report(stream.host, report, arrival_ns, refused)
                case "probe_sent":
                    error = "".join(filter(str.isprintable, message.probe_sent.error[:200]))
                    self._handlers.on_probe_sent(stream.host, message.probe_sent.probe, error)
                case other:
                    self._handlers.on_refused(stream.host, f"an unexpected message: {other}")
            words.spend(cost_s)
            await asyncio.sleep(words.wait_s)

    async def _refuse(self, context: _Context, peer: str, code: grpc.StatusCode, why: str) -> None:
        self._handlers.on_refused(peer, why)
        await context.abort(code, why)


class _AdmissionError(Exception):
    """A Hello that cannot be accepted."""

    def __init__(self, code: grpc.StatusCode, why: str) -> None:
        super().__init__(why)
        self.code = code


def _is_local(host: str) -> bool:
    """Say whether only this machine's processes reach ``host``, an address, a name, or ``unix``."""
    if host in ("unix", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _until_done(
    messages: _Messages, task: asyncio.Task[None]
) -> AsyncIterator[agent_pb2.ControllerMessage]:
    """Yield ``messages`` as they come, until ``task`` is done."""
    while not task.done():
        get = asyncio.create_task(messages.get())
        try:
            await asyncio.wait((get, task), return_when=asyncio.FIRST_COMPLETED)
            if get.done():
                yield get.result()
        finally:
            get.cancel()
