"""The stream, against a real gRPC server on loopback."""

import asyncio
import contextlib
import dataclasses
import itertools
import socket
import time

import grpc
import pytest
from leveller_proto import agent_pb2 as pb
from leveller_proto import agent_pb2_grpc
from structlog.testing import capture_logs

from controlplane.agents import AgentServer, Handlers
from hostagent import session
from hostagent.config import AgentTlsSection
from hostagent.flows.connection import FiveTuple
from hostagent.flows.flow import Flow
from hostagent.flows.tracker import Changes
from hostagent.jobs.tracker import TrackedJob
from hostagent.probe.packet import ProbeSpec
from hostagent.session import HEARTBEAT_S, MAX_ANSWERS, ControllerSession, Identity
from hostagent.state import HostState
from leveller.tls import TlsSection
from tests.certificates import Authority

IDENTITY = Identity("h1", ("10.0.1.1", "fd00::1"), "0.1.0", "boot-1")
FLOW = FiveTuple(b"\x0a\0\1\1", b"\x0a\0\2\1", 6, 40000, 5001)


class Controller(agent_pb2_grpc.AgentsServicer):
    """A controller that notes what it hears and says what it is told to."""

    def __init__(self):
        self.streams = []
        self.arrivals = []
        self.welcome = pb.Welcome(protocol_version=1, controller="c1")
        self.to_say = asyncio.Queue()
        self.reads = asyncio.Event()
        self.reads.set()
        self.hang_up = asyncio.Event()

    async def Connect(self, request_iterator, context):
        heard = []
        self.streams.append(heard)
        yield pb.ControllerMessage(welcome=self.welcome)
        reader = asyncio.create_task(self._read(request_iterator, heard))
        try:
            while not self.hang_up.is_set():
                with contextlib.suppress(TimeoutError):
                    yield await asyncio.wait_for(self.to_say.get(), 0.02)
        finally:
            reader.cancel()

    async def _read(self, requests, heard):
        async for message in requests:
            heard.append(message)
            self.arrivals.append(time.monotonic())
            await self.reads.wait()

    def reports(self, stream=-1):
        return [message.report for message in self.streams[stream] if message.HasField("report")]

    def answers(self):
        return [message.probe_sent for message in self.streams[-1] if message.HasField("probe_sent")]


async def serve(controller, port=0):
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    agent_pb2_grpc.add_AgentsServicer_to_server(controller, server)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    return server, bound


class World:
    """An agent's session, a controller, and what lies between."""

    def __init__(self, controller, target, interval_s):
        self.controller = controller
        self.probes = []
        self.state = HostState(lambda: self.session.wake(), lambda: self.session.note())
        self.session = ControllerSession(target, IDENTITY, self.state, self.probe, interval_s)
        self.task = asyncio.create_task(self.session.run())

    async def probe(self, spec):
        self.probes.append(spec)
        return "no such flow" if spec.flow.protocol == 17 else ""

    def iterate(self, n):
        job = TrackedJob("job1", 5)
        job.counter.iterations = n
        self.state.job_changed(job, [1000])


@pytest.fixture
async def connect():
    async with contextlib.AsyncExitStack() as undo:

        async def connect(interval_s=0.05, **welcome):
            controller = Controller()
            if welcome:
                controller.welcome = pb.Welcome(**welcome)
            server, port = await serve(controller)
            world = World(controller, f"127.0.0.1:{port}", interval_s)
            world.server, world.port = server, port

            async def close():
                world.task.cancel()
                await asyncio.gather(world.task, return_exceptions=True)
                await world.server.stop(0)

            undo.push_async_callback(close)
            return world

        yield connect


async def test_hello_then_a_full_report_then_changes(connect, eventually_async):
    world = await connect()
    world.iterate(1)
    await eventually_async(lambda: world.controller.streams and len(world.controller.reports()) >= 3)
    first = world.controller.streams[0][0]
    assert first.hello == pb.Hello(
        protocol_version=1, host="h1", addresses=["10.0.1.1", "fd00::1"], version="0.1.0", boot_id="boot-1"
    )
    reports = world.controller.reports()
    assert [report.full for report in reports] == [True] + [False] * (len(reports) - 1)
    assert [report.sequence for report in reports] == list(range(len(reports)))
    assert [job.iterations for job in reports[0].jobs] == [1]
    assert not any(report.jobs for report in reports[1:])
    assert sum(message.HasField("hello") for message in world.controller.streams[0]) == 1


async def test_iterations_are_reported_at_once_and_heartbeats_in_between(connect, eventually_async):
    world = await connect(interval_s=2.0)
    await eventually_async(lambda: world.controller.streams and world.controller.reports())
    await asyncio.sleep(0.2)
    assert len(world.controller.reports()) == 1
    begun = time.monotonic()
    world.iterate(1)
    await eventually_async(lambda: len(world.controller.reports()) == 2)
    assert world.controller.arrivals[-1] - begun < 0.5
    job = world.controller.reports()[1].jobs[0]
    assert (job.iterations, list(job.iteration_ns)) == (1, [1000])


async def test_controller_may_ask_for_more_frequent_reports(connect, eventually_async):
    world = await connect(interval_s=60.0, protocol_version=1, controller="c1", report_interval_ns=30_000_000)
    await eventually_async(lambda: world.controller.streams and len(world.controller.reports()) >= 6)


async def test_probes_are_answered(connect, eventually_async):
    world = await connect()
    asked = pb.FiveTuple(
        source=FLOW.source, destination=FLOW.destination, protocol=6, source_port=40000, destination_port=5001
    )
    request = pb.ProbeRequest(probe=7, tuple=asked, dscp=23, instructions=0xDC00, max_hops=8, domain=5)
    await world.controller.to_say.put(pb.ControllerMessage(probe=request))
    request = pb.ProbeRequest(probe=8, tuple=asked, dscp=23, instructions=0xDC00, max_hops=8)
    request.tuple.protocol = 17
    await world.controller.to_say.put(pb.ControllerMessage(probe=request))
    await eventually_async(lambda: world.controller.streams and len(world.controller.answers()) == 2)
    assert world.controller.answers() == [pb.ProbeSent(probe=7), pb.ProbeSent(probe=8, error="no such flow")]
    assert world.probes[0] == ProbeSpec(FLOW, 23, 0xDC00, 8, 5)


async def test_new_stream_begins_with_a_full_report(connect, eventually_async):
    world = await connect()
    world.iterate(3)
    await eventually_async(lambda: world.controller.streams and world.controller.reports())
    world.controller.hang_up.set()
    await eventually_async(lambda: len(world.controller.streams) >= 2)
    world.controller.hang_up.clear()
    await eventually_async(lambda: world.controller.streams and world.controller.reports())
    report = world.controller.reports()[0]
    assert (report.full, report.sequence) == (True, 0)
    assert [(job.iterations, list(job.iteration_ns)) for job in report.jobs] == [(3, [])]
    assert world.controller.streams[-1][0].HasField("hello")


async def test_controller_that_dies_and_comes_back(connect, eventually_async):
    world = await connect()
    await eventually_async(lambda: world.controller.streams and world.controller.reports())
    await world.server.stop(0)
    world.iterate(1)
    await asyncio.sleep(0.3)
    again = Controller()
    world.server, _ = await serve(again, world.port)
    await eventually_async(lambda: again.streams and again.reports())
    assert [job.iterations for job in again.reports()[0].jobs] == [1]


async def test_controller_that_comes_late(eventually_async):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    controller = Controller()
    world = World(controller, f"127.0.0.1:{port}", 0.05)
    await asyncio.sleep(0.3)
    server, _ = await serve(controller, port)
    await eventually_async(lambda: controller.streams and controller.reports())
    world.task.cancel()
    await asyncio.gather(world.task, return_exceptions=True)
    await server.stop(0)


async def test_controller_of_another_protocol_is_left_and_tried_again(connect, eventually_async):
    world = await connect(protocol_version=2)
    await eventually_async(lambda: len(world.controller.streams) >= 2)
    assert not world.session._welcomed
    assert not world.task.done()


async def test_controller_that_cancels_is_tried_again(connect, eventually_async):
    world = await connect()

    async def refuse(request_iterator, context):
        world.controller.streams.append([])
        await context.abort(grpc.StatusCode.CANCELLED, "go away")
        yield

    world.controller.Connect = refuse
    world.controller.hang_up.set()
    await world.server.stop(0)
    world.server, _ = await serve(world.controller, world.port)
    count = len(world.controller.streams)
    await eventually_async(lambda: len(world.controller.streams) >= count + 2)
    assert not world.task.done()


async def test_slow_controller_delays_nobody_and_loses_no_change(connect, eventually_async):
    world = await connect(interval_s=0.01)
    await eventually_async(lambda: world.controller.streams and world.controller.reports())
    world.controller.reads.clear()
    flows = {}
    for port in range(30_000):  # several MiB of reports: more than the connection holds
        key = FLOW._replace(source_port=port)
        flows[key] = Flow("job1", port, 1, 0)
        world.state.flows_changed(Changes(opened=[key]), flows)
        if port % 500 == 0:
            begun = time.monotonic()
            await asyncio.sleep(0)
            assert time.monotonic() - begun < 1
    world.iterate(9)
    await asyncio.sleep(0.5)
    world.controller.reads.set()
    known = {}

    def caught_up():
        known.clear()
        for report in world.controller.reports():
            known.update({flow.tuple.source_port: flow.job for flow in report.flows})
        return len(known) == 30_000

    await eventually_async(caught_up)
    await eventually_async(
        lambda: [j.iterations for r in world.controller.reports() for j in r.jobs][-1:] == [9]
    )
    # Merged, not queued: at 10 ms a report and one per opened flow there would have been thousands.
    assert len(world.controller.reports()) < 1000


async def test_flood_of_requests_is_held_back(connect, eventually_async):
    world = await connect()
    await eventually_async(lambda: world.controller.streams and world.controller.reports())
    world.controller.reads.clear()
    request = pb.ControllerMessage(probe=pb.ProbeRequest(probe=1, tuple=pb.FiveTuple(protocol=6)))
    for _ in range(4 * MAX_ANSWERS):
        world.controller.to_say.put_nowait(request)
    await asyncio.sleep(0.3)
    world.controller.reads.set()
    await eventually_async(lambda: len(world.controller.answers()) == 4 * MAX_ANSWERS)


async def test_where_nothing_changes_there_are_heartbeats_only(connect, eventually_async):
    world = await connect(interval_s=0.02)
    await eventually_async(lambda: world.controller.streams and world.controller.reports())
    await asyncio.sleep(2.2 * HEARTBEAT_S)
    reports = world.controller.reports()
    assert 2 <= len(reports) <= 4
    assert [report.sequence for report in reports] == list(range(len(reports)))


async def test_a_change_that_is_not_urgent_waits_for_the_interval_and_no_longer(connect, eventually_async):
    world = await connect(interval_s=0.3)
    await eventually_async(lambda: world.controller.streams)
    flows = {FLOW: Flow("job1", 1, 100, 0)}
    world.state.flows_changed(Changes(opened=[FLOW]), flows)
    await eventually_async(lambda: any(report.flows for report in world.controller.reports()))
    for sent in range(1, 40):
        flows[FLOW].bytes_sent = sent
        world.state.flows_changed(Changes(changed=[FLOW]), flows)
        await asyncio.sleep(0.025)
    await eventually_async(
        lambda: any(flow.bytes_sent == 39 for report in world.controller.reports() for flow in report.flows)
    )
    told = [report for report in world.controller.reports() if report.flows]
    assert 3 <= len(told) <= 8  # 39 changes in 1 s, merged into a Report each 0.3 s
    gaps = [later - earlier for earlier, later in itertools.pairwise(world.controller.arrivals[2:])]
    assert max(gaps) < HEARTBEAT_S


async def test_other_addresses_are_said_in_a_new_hello(connect, eventually_async):
    world = await connect()
    await eventually_async(lambda: world.controller.streams and world.controller.reports())
    other = dataclasses.replace(IDENTITY, addresses=("10.0.1.1", "10.0.1.65"))
    world.session.introduce(other)
    await eventually_async(lambda: len(world.controller.streams) == 2 and world.controller.reports())
    assert list(world.controller.streams[1][0].hello.addresses) == ["10.0.1.1", "10.0.1.65"]
    assert world.controller.reports()[0].full


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    authority = Authority(folder)
    authority.sign("controller", "DNS:controller.example")
    authority.sign("h1", "DNS:h1,IP:10.0.1.1")
    authority.sign("h2", "DNS:h2,IP:10.0.2.1")
    Authority(folder, "other").sign("stranger", "DNS:h1,IP:10.0.1.1")
    return folder


@contextlib.asynccontextmanager
async def by_tls(keys, name, ca="ca", server_name="controller.example"):
    """An agent's session by the certificate ``name`` and a real controller's server; yield what it told."""
    reports, refused = [], []
    handlers = Handlers(
        lambda host, report, *_: reports.append((host, report.full)),
        lambda *_: None,
        lambda *r: refused.append(r),
    )
    own = TlsSection(cert=keys / "controller.pem", key=keys / "controller.key", ca=keys / "ca.pem")
    server = AgentServer("c1", handlers, tls=own)
    with capture_logs() as logs:
        async with server.serve("127.0.0.1:0") as target:
            tls = name and AgentTlsSection(
                cert=keys / f"{name}.pem",
                key=keys / f"{name}.key",
                ca=keys / f"{ca}.pem",
                server_name=server_name,
            )
            mine = ControllerSession(target, IDENTITY, HostState(int, int), None, 0.05, tls)
            task = asyncio.create_task(mine.run())
            yield server, reports, refused, logs
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_why_there_is_no_controller_in_plain_text(eventually_async, monkeypatch):
    monkeypatch.setattr(session, "CONNECT_S", 0.5)
    with socket.socket() as free, capture_logs() as logs:
        free.bind(("127.0.0.1", 0))
        target = f"127.0.0.1:{free.getsockname()[1]}"
        task = asyncio.create_task(ControllerSession(target, IDENTITY, HostState(int, int), None, 0.05).run())
        await eventually_async(lambda: why(logs))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert "Connection refused" in why(logs)[0]


def why(logs):
    return [line["reason"] for line in logs if line["event"] == "no controller"]


async def test_mutual_tls_and_an_address_that_the_certificate_lacks(keys, eventually_async):
    async with by_tls(keys, "h1") as (server, reports, refused, logs):
        await eventually_async(lambda: reports)
        assert reports[0] == ("h1", True)
        assert [(agent.addresses, agent.authenticated) for agent in server.agents()] == [
            (("10.0.1.1",), True)
        ]
        assert refused == [("h1", "it claims fd00::1, which its certificate does not have")]
        lacking = [line for line in logs if line["event"].startswith("the certificate does not have")]
        assert [line["addresses"] for line in lacking] == ["fd00::1"]


@pytest.mark.parametrize(
    ("name", "more", "reason"),
    [
        ("h2", {}, "PERMISSION_DENIED: it claims to be host h1, but its certificate is for h2"),
        ("stranger", {}, "; see that it knows our CA"),
        (None, {}, "; where it wants TLS, give [agent.tls]"),
        ("h1", {"ca": "other"}, "CERTIFICATE_VERIFY_FAILED"),
        ("h1", {"server_name": None}, "UNAVAILABLE: "),
        ("none", {}, "none.pem cannot be read"),
    ],
)
async def test_why_there_is_no_controller_by_tls(keys, eventually_async, monkeypatch, name, more, reason):
    monkeypatch.setattr(session, "CONNECT_S", 0.5)
    async with by_tls(keys, name, **more) as (server, reports, _, logs):
        await eventually_async(lambda: why(logs))
        assert reason in why(logs)[0]
        assert (server.agents(), reports) == ([], [])
