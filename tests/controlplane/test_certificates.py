"""The agents' channel by mutual TLS: real gRPC, certificates made here."""

import asyncio
import contextlib
import os
import re
import subprocess
from ipaddress import ip_address
from pathlib import Path

import grpc
import pytest
from leveller_proto import agent_pb2, agent_pb2_grpc
from structlog.testing import capture_logs

from controlplane import certificates
from controlplane.agents import AgentServer, Handlers
from controlplane.model import FiveTuple
from controlplane.reports import encode_flow
from leveller.errors import UserError
from leveller.tls import Names, TlsSection
from tests.certificates import Authority

FLOW = FiveTuple(ip_address("10.0.1.1"), ip_address("10.0.2.1"), 6, 40000, 5000)
DENIED = grpc.StatusCode.PERMISSION_DENIED


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """The controller's certificate, two hosts', and one by a CA that the controller does not know."""
    folder = tmp_path_factory.mktemp("keys")
    authority, other = Authority(folder), Authority(folder, "other")
    authority.sign("controller", "IP:127.0.0.1,DNS:controller.example")
    authority.sign("h1", "DNS:h1,IP:10.0.1.1,IP:fd00::1")
    authority.sign("h2", "IP:10.0.2.1", common="h2")
    authority.sign("h3", "DNS:Host3.example,IP:10.0.3.1")
    other.sign("stranger", "DNS:h1,IP:10.0.1.1")
    return folder


def section(keys):
    return TlsSection(cert=keys / "controller.pem", key=keys / "controller.key", ca=keys / "ca.pem")


class Serving:
    """A server by TLS, and what it told."""

    def __init__(self, keys, tls):
        self.keys, self.reports, self.refused = keys, [], []
        handlers = Handlers(
            lambda host, report, _, refused: self.reports.append((host, report, refused)),
            lambda *_: None,
            lambda *refused: self.refused.append(refused),
        )
        self.server = AgentServer("c1", handlers, tls=tls)

    @contextlib.asynccontextmanager
    async def stream(self, who, host, *addresses, ca="ca"):
        """Connect with the certificate of ``who`` (None: without one) and say Hello as ``host``."""
        pair = (
            [(self.keys / f"{who}.{kind}").read_bytes() for kind in ("key", "pem")] if who else (None, None)
        )
        credentials = grpc.ssl_channel_credentials((self.keys / f"{ca}.pem").read_bytes(), *pair)
        async with grpc.aio.secure_channel(self.address, credentials) as channel:
            stream = agent_pb2_grpc.AgentsStub(channel).Connect()
            hello = agent_pb2.Hello(protocol_version=1, host=host, addresses=addresses)
            with contextlib.suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError):
                await stream.write(agent_pb2.AgentMessage(hello=hello))
            yield stream
            stream.cancel()

    async def welcomed(self, stream):
        assert (await stream.read()).welcome.controller == "c1"

    async def refusal(self, stream):
        with contextlib.suppress(grpc.aio.AioRpcError):
            await stream.read()
        return await stream.code(), await stream.details()


@pytest.fixture
async def serving(keys):
    made = Serving(keys, section(keys))
    async with made.server.serve("127.0.0.1:0") as made.address:
        yield made


async def until(condition):
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)


async def test_an_agent_is_who_its_certificate_says(serving):
    async with serving.stream("h1", "h1", "10.0.1.1", "fd00::1") as stream:
        await serving.welcomed(stream)
        (agent,) = serving.server.agents()
        assert (agent.host, agent.addresses, agent.authenticated) == ("h1", ("10.0.1.1", "fd00::1"), True)
    assert serving.refused == []


async def test_the_common_name_is_the_hosts_where_there_is_no_dns_name(serving):
    async with serving.stream("h2", "h2", "10.0.2.1") as stream:
        await serving.welcomed(stream)


async def test_a_host_is_called_as_its_certificate_spells_it(serving):
    async with serving.stream("h3", "host3.EXAMPLE", "10.0.3.1") as first:
        await serving.welcomed(first)
        async with serving.stream("h3", "HOST3.example", "10.0.3.1") as second:
            await serving.welcomed(second)
            assert await first.read() is grpc.aio.EOF
            assert [agent.host for agent in serving.server.agents()] == ["Host3.example"]


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        (("h2", "10.0.1.1"), "it claims to be host h2, but its certificate is for h1"),
        (("h1.example", "10.0.1.1"), "it claims to be host h1.example, but its certificate is for h1"),
        (("h1", "10.0.2.1", "10.0.9.9"), "its certificate has none of its addresses, 10.0.2.1, 10.0.9.9"),
    ],
)
async def test_what_is_not_in_the_certificate_is_refused_and_changes_nothing(serving, claim, why):
    async with serving.stream("h1", *claim) as stream:
        assert await serving.refusal(stream) == (DENIED, why)
    assert serving.refused == [("h1", why)]
    assert serving.server.agents() == []
    async with serving.stream("h2", "h2", "10.0.2.1") as owner:
        await serving.welcomed(owner)


async def test_a_connected_host_is_not_replaced_by_another_certificate(serving):
    async with serving.stream("h1", "h1", "10.0.1.1") as owner:
        await serving.welcomed(owner)
        async with serving.stream("h2", "h1", "10.0.1.1") as thief:
            assert (await serving.refusal(thief))[0] is DENIED
        assert [agent.host for agent in serving.server.agents()] == ["h1"]
        await owner.write(agent_pb2.AgentMessage(report=agent_pb2.Report(full=True)))
        await until(lambda: serving.reports)


async def test_of_some_addresses_in_the_certificate_only_those_are_spoken_for(serving):
    flows = [
        agent_pb2.FlowState(
            tuple=encode_flow(FLOW._replace(source=ip_address(source))), job="a", bytes_sent=9
        )
        for source in ("10.0.1.1", "10.0.2.1")
    ]
    async with serving.stream("h1", "h1", "10.0.1.1", "10.0.2.1") as stream:
        await serving.welcomed(stream)
        await stream.write(agent_pb2.AgentMessage(report=agent_pb2.Report(full=True, flows=flows)))
        await until(lambda: serving.reports)
        assert serving.server.agents()[0].addresses == ("10.0.1.1",)
        # The other one is still its owner's.
        async with serving.stream("h2", "h2", "10.0.2.1") as owner:
            await serving.welcomed(owner)
    assert serving.refused == [("h1", "it claims 10.0.2.1, which its certificate does not have")]
    host, report, refused = serving.reports[0]
    assert (host, [flow.flow.source for flow in report.flows]) == ("h1", [ip_address("10.0.1.1")])
    assert refused == ["a flow from 10.0.2.1, which is not an address of that host"]


@pytest.mark.parametrize(
    ("who", "ca"),
    [(None, "ca"), ("stranger", "ca"), ("h1", "other")],
    ids=["no certificate", "a certificate of another CA", "a controller that the agent does not know"],
)
async def test_no_stream_without_trust_both_ways(serving, who, ca):
    async with serving.stream(who, "h1", "10.0.1.1", ca=ca) as stream:
        assert (await serving.refusal(stream))[0] is grpc.StatusCode.UNAVAILABLE
    assert serving.server.agents() == []


async def test_plain_text_is_refused(serving):
    async with grpc.aio.insecure_channel(serving.address) as channel:
        stream = agent_pb2_grpc.AgentsStub(channel).Connect()
        assert (await serving.refusal(stream))[0] is grpc.StatusCode.UNAVAILABLE


async def test_new_files_count_from_the_next_connection_and_bad_ones_do_not(keys, tmp_path):
    for name in ("controller.pem", "controller.key", "h1.pem", "h1.key", "stranger.pem", "stranger.key"):
        (tmp_path / name).write_bytes((keys / name).read_bytes())
    (tmp_path / "ca.pem").write_bytes((keys / "ca.pem").read_bytes())
    made = Serving(keys, section(tmp_path))
    async with made.server.serve("127.0.0.1:0") as made.address:
        async with made.stream("stranger", "h1", "10.0.1.1") as stream:
            assert (await made.refusal(stream))[0] is grpc.StatusCode.UNAVAILABLE
        (tmp_path / "new.pem").write_bytes((keys / "other.pem").read_bytes())
        os.replace(tmp_path / "new.pem", tmp_path / "ca.pem")
        async with made.stream("stranger", "h1", "10.0.1.1") as stream:
            await made.welcomed(stream)
        (tmp_path / "controller.key").write_text("torn")
        with capture_logs() as logs:
            async with made.stream("stranger", "h1", "10.0.1.1") as stream:
                await made.welcomed(stream)
        assert "controller.key" in next(
            line["reason"] for line in logs if line["event"].startswith("new certificates cannot be used")
        )


async def test_a_missing_file_is_said_once(keys, tmp_path):
    for name in ("controller.pem", "controller.key", "ca.pem", "h1.pem", "h1.key"):
        (tmp_path / name).write_bytes((keys / name).read_bytes())
    made = Serving(keys, section(tmp_path))
    async with made.server.serve("127.0.0.1:0") as made.address:
        for _ in range(2):
            (tmp_path / "controller.key").rename(tmp_path / "away")
            with capture_logs() as logs:
                for _ in range(4):
                    async with made.stream("h1", "h1", "10.0.1.1") as stream:
                        await made.welcomed(stream)
            (line,) = [line for line in logs if line["event"].startswith("new certificates cannot be used")]
            assert "controller.key" in line["reason"]
            (tmp_path / "away").rename(tmp_path / "controller.key")
            async with made.stream("h1", "h1", "10.0.1.1") as stream:
                await made.welcomed(stream)


def test_files_that_cannot_be_used_are_told_at_start(keys):
    tls = section(keys).model_copy(update={"key": keys / "h1.key"})
    with pytest.raises(
        UserError, match=r"controller\.tls\.key: .*h1\.key is not the key of .*controller\.pem"
    ):
        certificates.server_credentials(tls)


@pytest.mark.parametrize(
    ("listen", "warned"), [("0.0.0.0:0", 1), ("[::]:0", 1), ("127.0.0.1:0", 0), ("[::1]:0", 0)]
)
async def test_listening_to_the_world_in_plain_text_is_said(listen, warned):
    with capture_logs() as logs:
        async with AgentServer("c1", Handlers(*[lambda *_: None] * 3)).serve(listen):
            pass
    lines = [line for line in logs if line["event"].startswith("agents are not authenticated")]
    assert [line["listen"] for line in lines] == [listen] * warned


async def test_by_tls_there_is_nothing_to_say(keys):
    with capture_logs() as logs:
        async with Serving(keys, section(keys)).server.serve("0.0.0.0:0"):
            pass
    assert not [line for line in logs if line["event"].startswith("agents are not authenticated")]


def test_the_manual_s_commands_make_them(tmp_path):
    manual = (Path(__file__).parents[2] / "docs" / "controller.md").read_text()
    script = re.search(r"```sh\n(# A CA.*?)```", manual, re.DOTALL)[1]
    subprocess.run(["sh", "-e", "-c", script], cwd=tmp_path, check=True, capture_output=True)
    of = {
        name: TlsSection(cert=tmp_path / f"{name}.pem", key=tmp_path / f"{name}.key", ca=tmp_path / "ca.pem")
        for name in ("controller", "h1")
    }
    assert of["controller"].check("controller.tls", "server").addresses == {ip_address("10.255.0.1")}
    assert of["h1"].check("agent.tls", "client") == Names(
        frozenset({"h1"}), frozenset({ip_address("10.0.1.1")})
    )
