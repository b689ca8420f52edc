"""The running controller: real switch processes, real agents' streams, real sockets.

Only the probe's way through the fabric is left out: what a sink would report is handed to the controller. The
tests in mininet-tests send it through real ports.
"""

import asyncio
import contextlib
import dataclasses
import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from ipaddress import ip_address
from pathlib import Path

import grpc
import pytest
from leveller_proto import agent_pb2, agent_pb2_grpc
from structlog.testing import capture_logs

import p4src
from controlplane.config import Config
from controlplane.controller import Controller
from controlplane.int_report import Hop, IntReport
from controlplane.model import FiveTuple
from controlplane.reports import encode_flow
from controlplane.southbound import Fabric, FlowEntry, Target
from leveller.tls import TlsSection
from tests.certificates import Authority

COMMANDS = {
    "bmv2": shutil.which("simple_switch_grpc"),
    "softswitch": shutil.which("softswitch", path=str(Path(sys.executable).parent)),
}
MIB = 1 << 20


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def listens(address):
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
        return True
    return False


@pytest.fixture(params=list(COMMANDS))
def switch(request, tmp_path):
    """A switch process without ports; its P4Runtime address."""
    command, address = COMMANDS[request.param], free_address()
    if command is None:
        pytest.skip(f"{request.param} is not installed")
    quiet = "off" if request.param == "bmv2" else "warn"
    with (tmp_path / "switch.log").open("wb") as log:
        process = subprocess.Popen(
            [command, "--device-id", "1", "--log-level", quiet, "--no-p4", "--",
             "--grpc-server-addr", address, "--cpu-port", "510", "--priority-queues", "8"],
            stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        deadline = time.monotonic() + 20
        while not listens(address):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield address
        process.kill()
        process.wait()


def settings(tmp_path, switch, **sections):
    base = {
        "controller": {
            "listen": "127.0.0.1:0", "http": "127.0.0.1:0", "store": str(tmp_path / "l.db"), "tau_s": 0.1,
            "min_interval_s": 0.02, "forget_after_s": 4,
        },
        "policy": {"profile": False},
        "levels": {"count": 4},
        "switches": [
            {"name": "S1", "address": switch, "device_id": 1, "node_id": 1, "ports": [1, 2, 3],
             "host_ports": [1, 2]}
        ],
    }  # fmt: skip
    return Config.model_validate({**base, **sections})


@contextlib.asynccontextmanager
async def running(config, program=None):
    stop = asyncio.Event()
    controller = Controller(config)
    controller._program = program or controller._program
    life = asyncio.create_task(controller.run(stop))
    await asyncio.wait((life, controller.listening), return_when=asyncio.FIRST_COMPLETED)
    if life.done():
        life.result()
    try:
        yield controller
    finally:
        stop.set()
        await life


class Agent:
    """One host's agent: its stream, and the clock that its reports carry."""

    def __init__(self, stream, host):
        self.stream, self.host, self.began_ns = stream, host, time.monotonic_ns()

    async def report(self, *, iterations=None, job=None, flows=(), full=False, started_ago_s=10, ended=False):
        now = time.monotonic_ns()
        jobs = []
        if job:
            jobs = [
                agent_pb2.JobProgress(
                    job=job, log_format="nanogpt", iterations=iterations or 0,
                    state=agent_pb2.JOB_STATE_ENDED if ended else agent_pb2.JOB_STATE_RUNNING,
                    started_ns=self.began_ns - started_ago_s * 10**9, last_iteration_ns=now,
                    iteration_ns=[10**9] if iterations else [],
                )
            ]  # fmt: skip
        states = [agent_pb2.FlowState(tuple=encode_flow(flow), job=job, bytes_sent=MIB) for flow in flows]
        await self.stream.write(
            agent_pb2.AgentMessage(
                report=agent_pb2.Report(monotonic_ns=now, full=full, jobs=jobs, flows=states)
            )
        )

    async def probe(self):
        """The next probe that it is asked for."""
        async with asyncio.timeout(5):
            while True:
                message = await self.stream.read()
                if message.WhichOneof("body") == "probe":
                    return message.probe


@contextlib.asynccontextmanager
async def agent(controller, number):
    listen, _ = controller.listening.result()
    async with grpc.aio.insecure_channel(listen) as channel:
        stream = agent_pb2_grpc.AgentsStub(channel).Connect()
        hello = agent_pb2.Hello(protocol_version=1, host=f"h{number}", addresses=[f"10.0.{number}.1"])
        await stream.write(agent_pb2.AgentMessage(hello=hello))
        yield Agent(stream, f"h{number}")
        stream.cancel()


def flow(host):
    return FiveTuple(ip_address(f"10.0.{host}.1"), ip_address("10.0.9.1"), 6, 40000, 5000)


def sunk(controller, flow, *ports):
    stack = tuple(Hop(node_id=1, egress_port=port) for port in ports)
    controller.on_sunk("S1", IntReport(flow, stack, False, False, 9, 0))


async def status(controller):
    _, http = controller.listening.result()

    def get():
        with urllib.request.urlopen(f"http://{http}/status", timeout=5) as answer:
            return json.load(answer)

    return await asyncio.to_thread(get)


async def until(look, seconds=10):
    """Wait until ``look()``, a coroutine function, returns something true; return that."""
    async with asyncio.timeout(seconds):
        while not (found := await look()):  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.02)
    return found


async def held(controller):
    """What the controller has been told that the switch holds."""
    state = controller._fabric.held("S1")
    return state and (dict(state.flows), {group: each.level for group, each in state.groups.items()})


async def read_back(address):
    """What the switch really holds, read by another session."""
    async with Fabric([Target("S1", address, 1)], p4src.program("v1model"), election_id=99) as fabric:
        await fabric.connected()
        state = fabric.held("S1")
        return dict(state.flows), {group: each.level for group, each in state.groups.items()}


async def two_jobs(controller, one, other):
    """Jobs a and b meet on port 3; a has the lower R."""
    for host, job, iterations, number in ((one, "a", 2, 1), (other, "b", 6, 2)):
        await host.report(job=job, iterations=iterations, flows=[flow(number)], full=True)
        request = await host.probe()
        assert request.tuple == encode_flow(flow(number))
        assert request.dscp == p4src.program("v1model").constants["INT_DSCP"]
        sunk(controller, flow(number), 3)


BOTH = {flow(1): FlowEntry(1, 1), flow(2): FlowEntry(2, 2)}


async def test_reports_and_probes_become_levels_on_the_switch(switch, tmp_path):
    async with (
        running(settings(tmp_path, switch)) as controller,
        agent(controller, 1) as one,
        agent(controller, 2) as other,
    ):
        await two_jobs(controller, one, other)
        await until(lambda: is_held(controller, (BOTH, {1: 3, 2: 2})))
        await one.report(job="a", iterations=9)
        await until(lambda: is_held(controller, (BOTH, {1: 2, 2: 3})))

        seen = await status(controller)
        jobs = {job["id"]: job for job in seen["jobs"]}
        assert jobs["a"]["R"] > jobs["b"]["R"] > 0
        assert jobs["a"]["iterations"] == 9
        assert jobs["a"]["state"] == "ranked"
        assert "contends with b" in jobs["a"]["reason"]
        assert [(each["job"], each["path"], each["levels"]) for each in seen["groups"]] == [
            ("a", ["S1:3"], {"S1:3": 2}),
            ("b", ["S1:3"], {"S1:3": 3}),
        ]
        assert {each["host"]: each["path"] for each in seen["flows"]} == {"h1": ["S1:3"], "h2": ["S1:3"]}
        assert seen["switches"][0]["connected"]
        assert [each["host"] for each in seen["agents"]] == ["h1", "h2"]
        value = controller._metrics.registry.get_sample_value
        assert value("leveller_job_progress_rate", {"job": "a"}) == pytest.approx(jobs["a"]["R"], abs=0.1)
        assert value("leveller_level_changes_total", {"job": "a"}) == 2.0
        assert value("leveller_flip_seconds_count", {"switch": "S1"}) >= 1.0
    assert await read_back(switch) == (BOTH, {1: 2, 2: 3})


async def is_held(controller, expected):
    return await held(controller) == expected


async def test_an_unanswered_probe_is_asked_for_again(switch, tmp_path):
    async with running(settings(tmp_path, switch)) as controller, agent(controller, 1) as one:
        began = time.monotonic()
        await one.report(job="a", flows=[flow(1)], full=True)
        first, second = await one.probe(), await one.probe()
        assert first.probe != second.probe
        assert 0.2 < time.monotonic() - began < 1.0


async def test_dead_and_lying_agents_do_not_stop_the_others(switch, tmp_path):
    async with (
        running(settings(tmp_path, switch)) as controller,
        agent(controller, 1) as one,
        agent(controller, 3) as liar,
    ):
        await liar.report(job="x", iterations=10**18, full=True)
        await liar.report(job="y", iterations=2, started_ago_s=-100)
        async with agent(controller, 2) as dying:
            await two_jobs(controller, one, dying)
            await until(lambda: is_held(controller, (BOTH, {1: 3, 2: 2})))
        await one.report(job="a", iterations=9)
        await until(lambda: is_held(controller, (BOTH, {1: 2, 2: 3})))
        for _ in range(50):  # the dead host is forgotten in the end, with its flows
            await one.report(job="a", iterations=9)
            await asyncio.sleep(0.1)
        await until(lambda: is_held(controller, ({flow(1): FlowEntry(1, 1)}, {1: 3})))
        value = controller._metrics.registry.get_sample_value
        assert value("leveller_reports_refused_total") == 2.0
        assert [job["id"] for job in (await status(controller))["jobs"]] == ["a"]


async def test_a_switch_that_is_not_there_stops_nobody(switch, tmp_path):
    there = settings(tmp_path, switch).model_dump()["switches"][0]
    gone = {**there, "name": "S2", "address": free_address(), "device_id": 2, "node_id": 2}
    config = settings(tmp_path, switch, switches=[gone, there])
    async with running(config) as controller, agent(controller, 1) as one, agent(controller, 2) as other:
        await two_jobs(controller, one, other)
        await until(lambda: is_held(controller, (BOTH, {1: 3, 2: 2})))
        states = {each["name"]: each["connected"] for each in (await status(controller))["switches"]}
        assert states == {"S1": True, "S2": False}


async def test_a_restarted_controller_changes_nothing_until_it_knows_and_then_goes_on(switch, tmp_path):
    config = settings(tmp_path, switch)
    async with running(config) as first, agent(first, 1) as one, agent(first, 2) as other:
        await two_jobs(first, one, other)
        await until(lambda: is_held(first, (BOTH, {1: 3, 2: 2})))
    async with running(config) as second:
        await until(lambda: held(second))
        await asyncio.sleep(0.5)
        assert await held(second) == (BOTH, {1: 3, 2: 2})
        async with agent(second, 2) as other, agent(second, 1) as one:
            await other.report(job="b", iterations=1, flows=[flow(2)], full=True)
            await other.probe()
            sunk(second, flow(2), 3)
            await one.report(job="a", iterations=2, flows=[flow(1)], full=True)
            await one.probe()
            sunk(second, flow(1), 3)
            await until(lambda: is_held(second, (BOTH, {1: 2, 2: 3})))
        assert (await status(second))["switches"][0]["pipeline_pushes"] == 0


async def test_rankings_that_take_long_leave_its_peers_as_much_time(tmp_path, monkeypatch):
    async with running(settings(tmp_path, "127.0.0.1:1")) as controller:

        def slow_turn():
            time.sleep(0.05)  # longer than min_interval_s ...
            controller._wake.set()  # ... and there is always news

        monkeypatch.setattr(controller, "_turn", slow_turn)
        began, free_s = time.monotonic(), 0.0
        while (now := time.monotonic()) < began + 1.0:
            await asyncio.sleep(0)
            free_s += took if (took := time.monotonic() - now) < 0.04 else 0.0
        assert free_s > 0.3


async def test_flows_without_room_are_counted_and_shown_until_there_is_room(switch, tmp_path):
    """The switch takes two flows: jobs with the lowest R keep theirs, another's run at the default level."""
    program = p4src.program("v1model")
    small = json.loads(program.json.read_text())
    for table in small["pipelines"][0]["tables"]:
        if table["name"].endswith("flow_group_v4"):
            table["max_size"] = 2
    made = dataclasses.replace(program, json=tmp_path / "small.json")
    made.json.write_text(json.dumps(small))
    with capture_logs() as logs:
        async with (
            running(settings(tmp_path, switch), made) as controller,
            agent(controller, 1) as one,
            agent(controller, 2) as other,
            agent(controller, 3) as third,
        ):
            await two_jobs(controller, one, other)
            await until(lambda: is_held(controller, (BOTH, {1: 3, 2: 2})))
            await third.report(job="c", iterations=9, flows=[flow(3)], full=True)
            await third.probe()
            sunk(controller, flow(3), 3)
            await until(lambda: left_out_is(controller, {"c": 1}))
            seen = (await status(controller))["switches"][0]
            assert seen["refused"] == {"flow_group_v4": 1}
            assert seen["error"].startswith("flow_group_v4: no room for 1 of 3 flows")
            assert await held(controller) == (BOTH, {1: 3, 2: 2, 3: 1})
            await other.report(job="b", iterations=9, ended=True, full=True)
            there = {flow(1): FlowEntry(1, 1), flow(3): FlowEntry(3, 3)}
            await until(lambda: is_held(controller, (there, {1: 3, 3: 2})))
            await until(lambda: left_out_is(controller, {}))
    told = [line for line in logs if line["event"].startswith("a switch has")]
    assert [line["event"] for line in told] == [
        "a switch has no room for all flows",
        "a switch has room for all flows again",
    ]
    assert (told[0]["jobs"], told[0]["flows"], told[0]["level"]) == ("c", 1, 0)


async def left_out_is(controller, jobs):
    """Whether the status and the metrics say so."""
    value = controller._metrics.registry.get_sample_value("leveller_flows_left_out", {"switch": "S1"})
    shown = (await status(controller))["switches"][0]["left_out"]
    return (shown, value) == (jobs, float(sum(jobs.values())))


async def test_by_tls_a_claim_outside_the_certificate_is_shown_and_changes_nothing(tmp_path):
    authority = Authority(tmp_path)
    files = authority.sign("controller", "IP:127.0.0.1")
    authority.sign("h1", "DNS:h1,IP:10.0.1.1")
    config = settings(tmp_path, free_address())
    config = config.model_copy(
        update={"controller": config.controller.model_copy(update={"tls": TlsSection.model_validate(files)})}
    )
    read = {kind: (tmp_path / f"h1.{kind}").read_bytes() for kind in ("key", "pem")}
    credentials = grpc.ssl_channel_credentials(authority.pem.read_bytes(), read["key"], read["pem"])
    async with (
        running(config) as controller,
        grpc.aio.secure_channel(controller.listening.result()[0], credentials) as channel,
    ):
        stream = agent_pb2_grpc.AgentsStub(channel).Connect()
        hello = agent_pb2.Hello(protocol_version=1, host="h1", addresses=["10.0.1.1", "10.0.2.1"])
        await stream.write(agent_pb2.AgentMessage(hello=hello))
        await Agent(stream, "h1").report(job="a", iterations=1, flows=[flow(2), flow(1)], full=True)

        async def shown():
            seen = await status(controller)
            return seen if seen["flows"] else None

        seen = await until(shown)
        stream.cancel()
    assert [found["source"] for found in seen["flows"]] == ["10.0.1.1"]
    assert [(one["host"], one["addresses"], one["authenticated"]) for one in seen["agents"]] == [
        ("h1", ["10.0.1.1"], True)
    ]
    (refused,) = seen["refused"]
    assert (refused["who"], refused["count"]) == ("h1", 2)
    assert refused["reason"] == "a flow from 10.0.2.1, which is not an address of that host"


async def test_a_switch_that_tells_no_counters_holds_nothing_up(tmp_path):
    config = settings(tmp_path, free_address(), counters={"interval_s": 0.05})
    async with running(config) as controller, agent(controller, 1) as one:
        await one.report(job="a", iterations=2, flows=[flow(1)], full=True)
        await one.probe()
        sunk(controller, flow(1), 3)

        async def unread():
            return controller._metrics.counters_unread.labels("S1")._value.get() >= 3

        await until(unread)
        (job,) = (await status(controller))["jobs"]
    assert (job["checked"], job["flagged"], job["untold"]) == (False, None, 0)
    assert controller._metrics.loop_errors._value.get() == 0


async def test_counters_of_a_real_switch_are_read(switch, tmp_path):
    config = settings(tmp_path, switch, counters={"interval_s": 0.05})
    async with running(config) as controller, agent(controller, 1) as one:
        seen = []
        observe = controller._engine.on_counters
        controller._engine.on_counters = lambda readings, *rest: (
            seen.append(readings),
            observe(readings, *rest),
        )
        await one.report(job="a", iterations=2, flows=[flow(1)], full=True)
        await one.probe()
        sunk(controller, flow(1), 3)

        async def read():
            return {"S1": {flow(1): 0}} in seen

        await until(read)
    assert controller._metrics.loop_errors._value.get() == 0
