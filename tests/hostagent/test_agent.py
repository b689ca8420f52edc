"""The whole agent as a process, in a network namespace with real jobs, flows and a real controller."""

import asyncio
import contextlib
import os
import re
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from leveller_proto import agent_pb2 as pb
from leveller_proto import agent_pb2_grpc
from scapy.layers.inet import TCP
from scapy.layers.l2 import Ether

from hostagent.agent import _nccl_receiver
from hostagent.config import AgentSection, in_unit
from leveller.errors import UserError

LEVELLER = str(Path(sys.executable).with_name("leveller"))


class Controller(agent_pb2_grpc.AgentsServicer):
    """Keeps what it hears, merged as a controller would."""

    def __init__(self):
        self.hello = None
        self.jobs, self.flows, self.answers = {}, {}, []
        self.durations = []
        self.to_say = asyncio.Queue()

    async def Connect(self, request_iterator, context):
        yield pb.ControllerMessage(welcome=pb.Welcome(protocol_version=1, controller="test"))
        reader = asyncio.create_task(self._read(request_iterator))
        try:
            while True:
                yield await self.to_say.get()
        finally:
            reader.cancel()

    async def _read(self, requests):
        async for message in requests:
            if message.HasField("hello"):
                self.hello = message.hello
            elif message.HasField("probe_sent"):
                self.answers.append(message.probe_sent)
            else:
                self._apply(message.report)

    def _apply(self, report):
        if report.full:
            self.jobs, self.flows = {}, {}
        for job in report.jobs:
            self.jobs[job.job] = job
            self.durations += job.iteration_ns
        for closed in report.closed:
            self.flows.pop(closed.SerializeToString(deterministic=True), None)
        for flow in report.flows:
            self.flows[flow.tuple.SerializeToString(deterministic=True)] = flow


@pytest.fixture
async def controller(tmp_path):
    # A Unix socket is the one way from a network namespace to here that needs no cable.
    controller, server = Controller(), grpc.aio.server()
    controller.target = f"unix:{tmp_path}/c.sock"
    agent_pb2_grpc.add_AgentsServicer_to_server(controller, server)
    server.add_insecure_port(controller.target)
    await server.start()
    yield controller
    await server.stop(0)


@contextlib.contextmanager
def agent(two_hosts, directory, target, **environ):
    config = directory / "agent.toml"
    config.write_text(f'[agent]\nhost = "h1"\ncontrollers = ["{target}"]\ninterface = "data0"\n')
    with (directory / "agent.err").open("wb") as stderr:
        process = subprocess.Popen(
            ["ip", "netns", "exec", two_hosts.a, LEVELLER, "agent", "--config", str(config)],
            stderr=stderr,
            env={**os.environ, **environ},
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def sniffer(two_hosts):
    def inside():
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
        raw.bind(("data0", 0))
        raw.setblocking(False)
        return raw

    return two_hosts.inside(two_hosts.b, inside)


@pytest.mark.parametrize("version", [0, 1], ids=["ipv4", "ipv6"])
async def test_jobs_iterations_flows_and_probes(
    two_hosts, trainers, controller, tmp_path, eventually_async, version
):
    address = two_hosts.b_addresses[version]
    port = 29_555
    with agent(two_hosts, tmp_path, controller.target) as process, sniffer(two_hosts) as raw:
        await eventually_async(lambda: controller.hello)
        assert controller.hello.host == "h1"
        assert set(controller.hello.addresses) == set(two_hosts.a_addresses)
        trainers.start("listen", address, port, 0, 0, namespace=two_hosts.b, rank=1, log="b.log")
        await asyncio.sleep(0.5)
        trainer = trainers.start("connect", address, port, 10, 0.1, namespace=two_hosts.a, rank=0)

        # The flow, this host's direction of it only, and soon.
        (flow,) = (await eventually_async(lambda: controller.flows)).values()
        family = (socket.AF_INET, socket.AF_INET6)[version]
        assert flow.job == trainers.job
        assert flow.tuple.source == socket.inet_pton(family, two_hosts.a_addresses[version])
        assert flow.tuple.destination == socket.inet_pton(family, address)
        assert (flow.tuple.protocol, flow.tuple.destination_port) == (6, port)
        connected = re.search(r"connected (\d+)", (tmp_path / "train.log").read_text())
        assert connected
        assert flow.opened_ns - int(connected[1]) < 2e9  # 0.2 s and less when the machine is not busy
        await eventually_async(lambda: [f.bytes_sent for f in controller.flows.values()] == [100_000])

        # Its probe leaves for the next hop's real address, with the flow's own ports.
        request = pb.ProbeRequest(
            probe=42, tuple=flow.tuple, dscp=23, instructions=0xDC00, max_hops=8, domain=1
        )
        await controller.to_say.put(pb.ControllerMessage(probe=request))
        await eventually_async(lambda: controller.answers == [pb.ProbeSent(probe=42)])

        def probes():
            found = []
            with contextlib.suppress(BlockingIOError):
                while True:
                    packet = Ether(raw.recv(4096))
                    if TCP in packet and not packet[TCP].flags:
                        found.append(packet)
            return found

        (probe,) = await eventually_async(probes)
        assert (probe.src, probe.dst) == (two_hosts.a_mac, two_hosts.b_mac)
        assert (probe[TCP].sport, probe[TCP].dport) == (flow.tuple.source_port, port)
        assert bytes(probe[TCP].payload)[:8].hex() == "1003000028000708"

        # Iterations, by the log.
        await eventually_async(lambda: controller.jobs[trainers.job].iterations == 10)
        job = controller.jobs[trainers.job]
        assert (job.log_format, job.world_size, job.local_ranks) == ("megatron", 2, 1)
        assert job.state == pb.JOB_STATE_RUNNING
        assert job.started_ns < job.last_iteration_ns
        assert controller.durations == [100_000_000] * 10
        assert set(controller.jobs) == {trainers.job}

        # The end.
        trainer.kill()
        trainer.wait()
        await eventually_async(lambda: controller.jobs[trainers.job].state == pb.JOB_STATE_DIED)
        await eventually_async(lambda: not controller.flows)

        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 10) == 0
    assert "Traceback" not in (tmp_path / "agent.err").read_text()


async def test_logs_that_hang_hold_up_neither_other_jobs_nor_the_next_agent(
    two_hosts, trainers, controller, hanging, tmp_path, eventually_async
):
    ours, other = f"{trainers.job}-ours", f"{trainers.job}-other"

    def counted():
        return {name: job.iterations for name, job in controller.jobs.items()}

    trainers.start("idle", "-", 0, 999, 0.05, namespace=two_hosts.a, job=ours, log=str(hanging.log))
    trainers.start("idle", "-", 0, 999, 0.05, namespace=two_hosts.a, job=other, log="other.log")
    with contextlib.ExitStack() as agents:
        agents.callback(hanging.go_on)  # a process that has such a file open cannot end before
        first = agents.enter_context(agent(two_hosts, tmp_path, controller.target))
        await eventually_async(lambda: len(counted()) == 2 and min(counted().values()) > 5)
        await asyncio.to_thread(hanging.stop)
        await eventually_async(lambda: "do not answer" in (tmp_path / "agent.err").read_text())
        before = counted()
        await asyncio.sleep(2)
        assert counted()[other] - before[other] >= 20

        controller.hello, controller.jobs = None, {}
        first.send_signal(signal.SIGTERM)
        await eventually_async(lambda: "agent stopped" in (tmp_path / "agent.err").read_text())
        second = agents.enter_context(agent(two_hosts, tmp_path, controller.target))
        await eventually_async(lambda: counted().get(other, 0) > before[other] + 40)
        assert controller.hello.host == "h1"
        second.send_signal(signal.SIGTERM)
        hanging.go_on()
        assert [await asyncio.to_thread(each.wait, 5) for each in (first, second)] == [0, 0]
    assert "Traceback" not in (tmp_path / "agent.err").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_signal_ends_it_cleanly_with_and_without_a_controller(
    two_hosts, controller, tmp_path, eventually_async, number
):
    for target in (controller.target, f"unix:{tmp_path}/nobody.sock"):
        with agent(two_hosts, tmp_path, target) as process:
            told = "controller connected" if target == controller.target else "no controller"
            await eventually_async(lambda told=told: told in (tmp_path / "agent.err").read_text())
            process.send_signal(number)
            assert await asyncio.to_thread(process.wait, 10) == 0
        assert "Traceback" not in (tmp_path / "agent.err").read_text()


async def test_restarted_agent_reads_the_log_again(
    two_hosts, trainers, controller, tmp_path, eventually_async
):
    trainers.start("idle", "-", 0, 20, 0.02, namespace=two_hosts.a)
    for _ in range(2):
        controller.hello, controller.jobs = None, {}
        with agent(two_hosts, tmp_path, controller.target) as process:
            await eventually_async(lambda: controller.hello and controller.jobs)
            await eventually_async(lambda: controller.jobs[trainers.job].iterations == 20)
            process.kill()


@pytest.mark.parametrize(
    ("number", "damage"),
    [(signal.SIGTERM, ""), (signal.SIGKILL, ""), (signal.SIGTERM, "damaged"), (signal.SIGTERM, "missing")],
    ids=["ended", "killed", "a damaged state file", "no state file"],
)
async def test_a_restarted_agent_knows_what_a_rotation_has_taken_away(
    two_hosts, trainers, controller, tmp_path, eventually_async, number, damage
):
    log, state = tmp_path / "train.log", tmp_path / "state"
    state.mkdir()
    line = " iteration %8d/    1000 | elapsed time per iteration (ms): 20.0 |\n"
    trainers.start("idle", "-", 0, 0, 0, namespace=two_hosts.a, mode="ab")

    async def reports(iterations):
        await eventually_async(lambda: trainers.job in controller.jobs)
        await eventually_async(lambda: controller.jobs[trainers.job].iterations == iterations)

    with agent(two_hosts, tmp_path, controller.target, STATE_DIRECTORY=str(state)) as process:
        await reports(0)
        with log.open("a") as file:
            file.writelines(line % n for n in range(1, 21))
        await reports(20)
        await eventually_async(lambda: "[20," in _text(state))
        log.with_suffix(".1").write_bytes(log.read_bytes())  # logrotate's copytruncate
        os.truncate(log, 0)
        with log.open("a") as file:
            file.writelines(line % n for n in range(21, 31))
        await reports(30)
        process.send_signal(number)
        process.wait()
    if damage == "damaged":
        (state / "agent.json").write_text(_text(state)[:100])
    elif damage == "missing":
        (state / "agent.json").unlink()
    controller.jobs = {}
    with agent(two_hosts, tmp_path, controller.target, STATE_DIRECTORY=str(state)):
        await reports(10 if damage else 30)  # without it, what is in the log
        assert controller.jobs[trainers.job].log_format == "megatron"
        assert ("damaged" in (tmp_path / "agent.err").read_text()) == (damage == "damaged")


def _text(state):
    path = state / "agent.json"
    return path.read_text() if path.exists() else ""


async def test_as_many_files_may_be_open_as_the_host_allows(
    two_hosts, controller, tmp_path, eventually_async
):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with agent(two_hosts, tmp_path, controller.target) as process:
            await eventually_async(lambda: controller.hello)
            assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (min(65_536, hard), hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_restarted_agent_is_told_what_it_missed(
    two_hosts, trainers, controller, tmp_path, eventually_async
):
    """The code tells its progress itself, there is no log, and no agent for a while."""
    code = (
        "import sys, time; import hostagent.report\n"
        "for n in range(101, 10**9):\n"
        "    hostagent.report.iteration(n)\n"
        "    open(sys.argv[1], 'w').write(str(n - 100)); time.sleep(0.05)"
    )
    path = os.pathsep.join(sys.path)
    trainers.start(
        str(tmp_path / "done"), program=code, namespace=two_hosts.a, log="/dev/null", PYTHONPATH=path
    )
    for _ in range(2):
        controller.hello, controller.jobs = None, {}
        with agent(two_hosts, tmp_path, controller.target) as process:
            await eventually_async(lambda: controller.jobs.get(trainers.job), 20)
            await eventually_async(lambda: controller.jobs[trainers.job].log_format == "report", 20)
            job = controller.jobs[trainers.job]
            assert job.source == "report"
            assert abs(job.iterations - int((tmp_path / "done").read_text())) <= 20
            process.kill()
        await asyncio.sleep(1)


def run(two_hosts, tmp_path, text, *wrapper):
    config = tmp_path / "agent.toml"
    config.write_text(text)
    return subprocess.run(
        ["ip", "netns", "exec", two_hosts.a, *wrapper, LEVELLER, "agent", "--config", str(config)],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "TERM": "dumb"},
    )


GOOD = '[agent]\nhost = "h1"\ncontrollers = ["127.0.0.1:9"]\ninterface = "data0"\n'


@pytest.mark.parametrize(
    ("change", "wrapper", "text"),
    [
        (("data0", "eth7"), (), "there is no interface eth7: give one of: data0, lo"),
        (('"data0"', '"data0"\naddresses = ["10.9.9.9"]'), (), "10.9.9.9 is not an address of data0"),
        (("host =", "hots ="), (), "agent.host is missing"),
        (('"data0"', '"data0"\nproc = "/nowhere"'), (), "agent.proc must be a mounted proc file system"),
        (
            ("", ""),
            ("setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw"),
            "path probes cannot be sent without CAP_NET_RAW: run the agent as root, or give it",
        ),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(two_hosts, tmp_path, change, wrapper, text):
    done = run(two_hosts, tmp_path, GOOD.replace(*change) if change[0] else GOOD, *wrapper)
    assert done.returncode == 2
    assert text in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_nccl_socket_is_where_the_configuration_or_systemd_says(tmp_path, monkeypatch):
    def opened(**settings):
        section = AgentSection(host="h1", controllers=("127.0.0.1:9",), interface="lo", **settings)
        receiver = _nccl_receiver(in_unit(section))
        if receiver is None:
            return None
        (path,) = (path for path in tmp_path.rglob("*.sock"))
        receiver.close()
        return path

    monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)
    assert opened() is None
    monkeypatch.setenv("RUNTIME_DIRECTORY", f"{tmp_path}:/nowhere")
    assert opened() == tmp_path / "nccl.sock"
    assert opened(nccl_socket=tmp_path / "mine.sock") == tmp_path / "mine.sock"
    monkeypatch.setenv("RUNTIME_DIRECTORY", f"{tmp_path}/gone")
    with pytest.raises(UserError, match="nccl_socket"):
        opened()
