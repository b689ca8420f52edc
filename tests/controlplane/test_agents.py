"""The agents' server, over real gRPC on loopback."""

import asyncio
import contextlib
import socket
from ipaddress import ip_address

import grpc
import pytest
from leveller_proto import agent_pb2, agent_pb2_grpc
from structlog.testing import capture_logs

from controlplane import agents
from controlplane.agents import AgentServer, Handlers
from controlplane.model import FiveTuple
from controlplane.reports import encode_flow
from leveller.errors import UserError

FLOW = FiveTuple(ip_address("10.0.1.1"), ip_address("10.0.2.1"), 6, 40000, 5000)


class Seen:
    """What the server told."""

    def __init__(self):
        self.reports, self.probes, self.refused = [], [], []
        self.handlers = Handlers(
            lambda host, report, arrival, refused: self.reports.append((host, report, arrival, refused)),
            lambda *probe: self.probes.append(probe),
            lambda *refused: self.refused.append(refused),
        )


@pytest.fixture
async def server():
    seen = Seen()
    server = AgentServer("c1", seen.handlers, report_interval_ns=5, clock_ns=lambda: 42)
    async with server.serve("127.0.0.1:0") as address:
        server.address, server.seen = address, seen
        yield server


async def test_a_unix_socket_serves_too(server, tmp_path):
    async with (
        server.serve(f"unix:{tmp_path}/agents.sock") as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        stream = agent_pb2_grpc.AgentsStub(channel).Connect()
        hello = agent_pb2.Hello(protocol_version=1, host="h9", addresses=["10.0.9.1"])
        await stream.write(agent_pb2.AgentMessage(hello=hello))
        assert (await welcomed(stream)).controller == "c1"
        stream.cancel()


@contextlib.asynccontextmanager
async def connect(server, hello=None, *, host="h1", addresses=("10.0.1.1",), version=1):
    """Open a stream and say Hello."""
    async with grpc.aio.insecure_channel(server.address) as channel:
        stream = agent_pb2_grpc.AgentsStub(channel).Connect()
        await stream.write(
            hello
            or agent_pb2.AgentMessage(
                hello=agent_pb2.Hello(protocol_version=version, host=host, addresses=addresses, version="t")
            )
        )
        yield stream
        stream.cancel()


async def welcomed(stream):
    message = await stream.read()
    assert message.WhichOneof("body") == "welcome"
    return message.welcome


async def refusal(stream):
    with contextlib.suppress(grpc.aio.AioRpcError):
        await stream.read()
    return await stream.code(), await stream.details()


async def until(condition):
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)


def report(**fields):
    return agent_pb2.AgentMessage(report=agent_pb2.Report(**fields))


async def test_hello_welcome_report_probe(server):
    async with connect(server) as stream:
        welcome = await welcomed(stream)
        assert (welcome.protocol_version, welcome.controller, welcome.report_interval_ns) == (1, "c1", 5)
        assert [agent.host for agent in server.agents()] == ["h1"]
        flow = agent_pb2.FlowState(tuple=encode_flow(FLOW), job="a", bytes_sent=9)
        await stream.write(report(full=True, monotonic_ns=7, flows=[flow]))
        await until(lambda: server.seen.reports)
        host, decoded, arrival, refused = server.seen.reports[0]
        assert (host, arrival, refused) == ("h1", 42, [])
        assert [(state.flow, state.bytes_sent) for state in decoded.flows] == [(FLOW, 9)]

        assert server.ask_probe("h1", agent_pb2.ProbeRequest(probe=3, tuple=encode_flow(FLOW)))
        assert (await stream.read()).probe.probe == 3
        sent = agent_pb2.ProbeSent(probe=3, error="no\x1b[31m route")
        await stream.write(agent_pb2.AgentMessage(probe_sent=sent))
        await until(lambda: server.seen.probes)
        assert server.seen.probes == [("h1", 3, "no[31m route")]
    await until(lambda: not server.agents())
    assert not server.ask_probe("h1", agent_pb2.ProbeRequest())


@pytest.mark.parametrize(
    ("hello", "code", "words"),
    [
        ({"version": 2}, grpc.StatusCode.FAILED_PRECONDITION, "protocol version 2"),
        ({"host": ""}, grpc.StatusCode.INVALID_ARGUMENT, "without a host name"),
        ({"addresses": []}, grpc.StatusCode.INVALID_ARGUMENT, "no address"),
        ({"addresses": ["10.0.1"]}, grpc.StatusCode.INVALID_ARGUMENT, "10.0.1"),
        ({"hello": report(full=True)}, grpc.StatusCode.INVALID_ARGUMENT, "the first message is no Hello"),
    ],
)
async def test_a_bad_hello_is_refused_with_the_reason(server, hello, code, words):
    async with connect(server, **hello) as stream:
        got, details = await refusal(stream)
    assert (got, words in details) == (code, True)
    assert server.agents() == []
    assert len(server.seen.refused) == 1


async def test_who_says_nothing_is_cut_off(server, monkeypatch):
    monkeypatch.setattr(agents, "HELLO_TIMEOUT_S", 0.1)
    async with grpc.aio.insecure_channel(server.address) as channel:
        code, _ = await refusal(agent_pb2_grpc.AgentsStub(channel).Connect())
    assert code is grpc.StatusCode.DEADLINE_EXCEEDED


@pytest.mark.parametrize("first", [b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)])
async def test_a_connection_without_a_stream_is_cut_off(monkeypatch, first):
    monkeypatch.setattr(agents, "CONNECTION_TIMEOUT_S", 0.3)
    async with AgentServer("c1", Seen().handlers).serve("127.0.0.1:0") as address:
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(first)
        async with asyncio.timeout(5):
            await reader.read()  # whatever it greets with, until it closes
        writer.close()


async def test_an_address_belongs_to_one_host_until_that_is_forgotten(server):
    async with connect(server, host="h1", addresses=["10.0.1.1", "10.0.1.2"]) as stream:
        await welcomed(stream)
        async with connect(server, host="h2", addresses=["10.0.1.2", "10.0.2.1"]) as thief:
            code, details = await refusal(thief)
        assert (code, details) == (grpc.StatusCode.ALREADY_EXISTS, "10.0.1.2 belongs to host h1")
        await stream.write(report(full=True))
        await until(lambda: server.seen.reports)
    await until(lambda: not server.agents())
    async with connect(server, host="h2", addresses=["10.0.1.2"]) as thief:
        assert (await refusal(thief))[0] is grpc.StatusCode.ALREADY_EXISTS
    server.forget("h1")
    async with connect(server, host="h2", addresses=["10.0.1.2"]) as heir:
        await welcomed(heir)


async def test_who_never_reports_keeps_no_address(server):
    for number in range(3):
        async with connect(server, host=f"squatter-{number}", addresses=["10.0.1.2"]) as squatter:
            await welcomed(squatter)
        await until(lambda: not server.agents())
    async with connect(server, host="h1", addresses=["10.0.1.2"]) as owner:
        await welcomed(owner)
        await owner.write(report(full=True))
        await until(lambda: server.seen.reports)
        server.forget("h1")  # silent for too long, and then gone
    await until(lambda: not server.agents())
    async with connect(server, host="h2", addresses=["10.0.1.2"]) as heir:
        await welcomed(heir)


async def test_who_leaves_at_once_is_not_kept(server):
    for number in range(20):
        async with connect(server, host=f"h{number}", addresses=[f"10.0.3.{number}"]):
            pass
    await until(lambda: not server.agents())
    async with connect(server, host="h", addresses=[f"10.0.3.{number}" for number in range(20)]) as heir:
        await welcomed(heir)


async def test_many_refusals_are_one_peers(server):
    for _ in range(3):
        async with connect(server, version=9) as stream:
            await refusal(stream)
    assert [who for who, _ in server.seen.refused] == ["ipv4:127.0.0.1"] * 3


async def test_a_version_is_short_and_printable(server):
    hello = agent_pb2.Hello(
        protocol_version=1, host="h1", addresses=["10.0.1.1"], version="1\x1b[2J" + "x" * 10**6
    )
    async with connect(server, agent_pb2.AgentMessage(hello=hello)) as stream:
        await welcomed(stream)
        assert server.agents()[0].version == "1[2J" + "x" * 59


async def test_a_host_that_connects_again_replaces_its_old_stream(server):
    async with connect(server) as old:
        await welcomed(old)
        async with connect(server) as new:
            await welcomed(new)
            assert await old.read() is grpc.aio.EOF
            assert server.ask_probe("h1", agent_pb2.ProbeRequest(probe=1))
            assert (await new.read()).probe.probe == 1
            assert len(server.agents()) == 1


async def test_a_connected_host_cannot_be_replaced_from_other_addresses(server):
    async with connect(server) as old:
        await welcomed(old)
        async with connect(server, addresses=["10.0.9.9"]) as other:
            assert (await refusal(other))[1] == "host h1 is connected with other addresses"
        assert server.agents()[0].addresses == ("10.0.1.1",)


async def test_the_first_report_must_be_full_and_flows_the_hosts_own(server):
    foreign = agent_pb2.FlowState(tuple=encode_flow(FLOW._replace(source=ip_address("10.0.9.9"))), job="a")
    async with connect(server) as stream:
        await welcomed(stream)
        await stream.write(report(sequence=1))
        await stream.write(report(sequence=2, full=True, flows=[foreign]))
        await until(lambda: server.seen.reports)
        assert server.seen.refused == [("h1", "the first report is not full")]
        _, decoded, _, refused = server.seen.reports[0]
        assert decoded.flows == ()
        assert refused == ["a flow from 10.0.9.9, which is not an address of that host"]


async def test_an_agent_that_does_not_read_fills_only_its_own_queue(server):
    request = agent_pb2.ProbeRequest(tuple=encode_flow(FLOW))
    async with connect(server) as deaf, connect(server, host="h2", addresses=["10.0.2.1"]) as other:
        await welcomed(other)
        await welcomed(deaf)
        taken = sum(server.ask_probe("h1", request) for _ in range(agents.QUEUE_LENGTH + 50))
        assert taken == agents.QUEUE_LENGTH
        assert server.ask_probe("h2", agent_pb2.ProbeRequest(probe=8))
        async with asyncio.timeout(5):
            assert (await other.read()).probe.probe == 8


async def test_an_agent_that_floods_is_slowed_and_the_other_is_served(server):
    async def flood(stream):
        for number in range(100_000):
            await stream.write(report(full=True, monotonic_ns=number))

    async with connect(server) as flooding, connect(server, host="h2", addresses=["10.0.2.1"]) as other:
        await welcomed(flooding)
        await welcomed(other)
        task = asyncio.create_task(flood(flooding))
        await asyncio.sleep(1.0)
        await other.write(report(full=True))
        async with asyncio.timeout(2):
            await until(lambda: any(host == "h2" for host, *_ in server.seen.reports))
        task.cancel()
        # A burst of a second's worth, and then one a millisecond.
        assert sum(host == "h1" for host, *_ in server.seen.reports) < 4000


@pytest.mark.parametrize("full", [True, False])
async def test_large_reports_are_taken_more_slowly(server, full):
    flows = [agent_pb2.FlowState()] * 2000

    async def flood(stream):
        for number in range(1000):
            await stream.write(report(full=full, monotonic_ns=number, flows=flows))

    async with connect(server) as stream:
        await welcomed(stream)
        task = asyncio.create_task(flood(stream))
        await asyncio.sleep(1.0)
        task.cancel()
        assert 3 <= len(server.seen.reports) + len(server.seen.refused) < 20


async def test_a_new_stream_brings_no_new_budget(server):
    large = report(full=True, flows=[agent_pb2.FlowState()] * 10_000)  # a second's worth

    async def again_and_again():
        while True:
            async with connect(server) as stream:
                await welcomed(stream)
                before = len(server.seen.reports)
                await stream.write(large)
                await until(lambda before=before: len(server.seen.reports) > before)

    tasks = [asyncio.create_task(again_and_again()) for _ in range(3)]
    await asyncio.sleep(2.0)
    async with connect(server, host="h2", addresses=["10.0.2.1"]) as other:
        async with asyncio.timeout(1):
            await welcomed(other)  # another host's agent does not wait
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert 2 <= len(server.seen.reports) <= 5


async def test_who_connects_too_often_is_refused(server, monkeypatch):
    monkeypatch.setattr(agents, "HELLO_TIMEOUT_S", 0.5)

    async def code():
        async with connect(server) as stream:
            try:
                await stream.read()
            except grpc.aio.AioRpcError as error:
                return error.code(), error.details()
            return None

    got = await asyncio.gather(*(code() for _ in range(60)))
    refused = [answer for answer in got if answer is not None]
    assert set(refused) == {(grpc.StatusCode.RESOURCE_EXHAUSTED, "it connects too often")}
    assert 10 <= len(refused) <= 30  # 20 may at once, and 10 more in half a second
    async with connect(server) as stream:
        await welcomed(stream)


async def test_coming_and_going_does_not_fill_the_log(server, monkeypatch):
    with capture_logs() as logs:
        for _ in range(10):
            async with connect(server) as stream:
                await welcomed(stream)
            await until(lambda: not server.agents())
        lines = [line["event"] for line in logs]
        assert lines == ["agent connected", "agent gone"] * 3 + ["agent connected"]
        account = server._accounts["h1"]
        account.lines = type(account.lines)(60.0)  # an hour later
        async with connect(server) as stream:
            await welcomed(stream)
        assert logs[7] == {
            "event": "agent connected",
            "log_level": "info",
            "host": "h1",
            "addresses": ["10.0.1.1"],
            "lines_left_out": 13,
        }


async def test_an_address_in_use_is_one_line_with_the_reason(server, capfd):
    with pytest.raises(UserError, match=r"controller.listen = .* cannot be listened on \(.*in use"):
        async with server.serve(server.address):
            pass
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UserError, match="in use"):
        async with server.serve(f"127.0.0.1:{taken.getsockname()[1]}"):
            pass
    assert capfd.readouterr().err == ""


async def test_a_unix_socket_is_not_taken_from_a_controller_that_runs(server, tmp_path):
    other = agents.AgentServer("other", server._handlers)
    async with server.serve(f"unix:{tmp_path}/s"):
        with pytest.raises(UserError, match="another process listens there"):
            async with other.serve(f"unix:{tmp_path}/s"):
                pass


async def test_a_unix_socket_in_no_directory(server, capfd):
    with pytest.raises(UserError, match="there is no directory /none"):
        async with server.serve("unix:/none/s"):
            pass
    assert capfd.readouterr().err == ""
