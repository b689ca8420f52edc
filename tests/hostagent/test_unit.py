"""The systemd unit, and the agent as a user who has nothing but what the unit gives."""

import asyncio
import configparser
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import grpc
import pytest
from leveller_proto import agent_pb2 as pb
from leveller_proto import agent_pb2_grpc

import hostagent

UNIT = Path(hostagent.__file__).with_name("systemd") / "leveller-agent.service"
LEVELLER = str(Path(sys.executable).with_name("leveller"))
NOBODY = "65534"
STARTED_S = 60
"""Until the agent has started, on a machine with much else to do."""
CAPABILITIES = ("net_raw", "sys_ptrace", "dac_read_search")


@pytest.fixture(scope="module")
def unit():
    parser = configparser.RawConfigParser(strict=True)
    parser.optionxform = str
    parser.read_string(UNIT.read_text())
    return parser


def test_the_unit_gives_what_the_agent_needs_and_no_more(unit):
    service = unit["Service"]
    wanted = {f"CAP_{name.upper()}" for name in CAPABILITIES}
    for key in ("AmbientCapabilities", "CapabilityBoundingSet"):
        assert set(service[key].split()) == wanted
    assert service["DynamicUser"] == "yes"
    families = {"AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET"}
    assert set(service["RestrictAddressFamilies"].split()) == families
    assert service["ExecStart"].split()[1:] == ["agent", "--config", "/etc/leveller/agent.toml"]
    assert service["Restart"] == "on-failure"
    assert service["StateDirectory"] == service["RuntimeDirectory"] == "leveller"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_understands_the_unit(unit, tmp_path):
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/leveller/bin/leveller", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


class Controller(agent_pb2_grpc.AgentsServicer):
    """Keeps what it hears, and asks for a probe of the first flow."""

    def __init__(self):
        self.jobs, self.flows, self.answers = {}, {}, []

    async def Connect(self, request_iterator, context):
        yield pb.ControllerMessage(welcome=pb.Welcome(protocol_version=1, controller="test"))
        async for message in request_iterator:
            if message.HasField("probe_sent"):
                self.answers.append(message.probe_sent)
            for job in message.report.jobs:
                self.jobs[job.job] = job
            for flow in message.report.flows:
                if flow.tuple.source_port not in self.flows:
                    request = pb.ProbeRequest(
                        probe=7, tuple=flow.tuple, dscp=0x17, instructions=0xCC00, max_hops=8, domain=1
                    )
                    yield pb.ControllerMessage(probe=request)
                self.flows[flow.tuple.source_port] = flow


@pytest.fixture
def place():
    """A directory that every user may read: pytest's own are its user's only."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.fixture
async def controller(place):
    controller, server = Controller(), grpc.aio.server()
    path = place / "c.sock"
    controller.target = f"unix:{path}"
    agent_pb2_grpc.add_AgentsServicer_to_server(controller, server)
    server.add_insecure_port(controller.target)
    await server.start()
    path.chmod(0o666)
    yield controller
    await server.stop(0)


def start(two_hosts, directory, target, capabilities):
    """Start the agent as nobody, with just these of root's rights."""
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    config = directory / "agent.toml"
    config.write_text(f'[agent]\nhost = "h1"\ncontrollers = ["{target}"]\ninterface = "data0"\n')
    given = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    sets = [f"--inh-caps={given}", f"--bounding-set={given}", f"--ambient-caps={given}"]
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs", *sets]
    command = ["ip", "netns", "exec", two_hosts.a, *user, LEVELLER, "agent", "--config", str(config)]
    with (directory / "agent.err").open("wb") as stderr:
        return subprocess.Popen(command, stderr=stderr, env={"PATH": os.environ["PATH"]})


def status_of(process):
    return Path(f"/proc/{process.pid}/status").read_text()


def said(place):
    return (place / "agent.err").read_text()


async def test_an_agent_that_is_not_root_sees_roots_jobs(
    two_hosts, trainers, controller, tmp_path, place, eventually_async
):
    address, port = two_hosts.b_addresses[0], 29_611
    trainers.start("listen", address, port, 0, 0, namespace=two_hosts.b, rank=1, log="b.log")
    await asyncio.sleep(0.5)
    (tmp_path / "train.log").touch(mode=0o600)
    trainers.start("connect", address, port, 5, 0.1, namespace=two_hosts.a)
    process = start(two_hosts, place, controller.target, CAPABILITIES)
    try:
        await eventually_async(
            lambda: trainers.job in controller.jobs and controller.jobs[trainers.job].iterations == 5,
            STARTED_S,
        )
        status = status_of(process)
        (flow,) = (await eventually_async(lambda: controller.flows)).values()
        assert (flow.job, flow.tuple.source) == (trainers.job, socket.inet_aton(two_hosts.a_addresses[0]))
        await eventually_async(lambda: controller.flows[flow.tuple.source_port].bytes_sent == 100_000)
        (answer,) = await eventually_async(lambda: controller.answers)
        assert (answer.probe, answer.error) == (7, "")
    finally:
        process.kill()
        process.wait()
    assert f"Uid:\t{NOBODY}\t{NOBODY}" in status
    assert "CapEff:\t0000000000082004" in status  # bits 2, 13 and 19
    assert "warning" not in said(place)


async def test_without_ptrace_it_says_that_it_cannot_see(
    two_hosts, trainers, controller, place, eventually_async
):
    trainers.start(namespace=two_hosts.a)
    process = start(two_hosts, place, controller.target, ("net_raw", "dac_read_search"))
    try:
        await eventually_async(lambda: "cannot be read" in said(place), STARTED_S)
    finally:
        process.kill()
        process.wait()
    assert "CAP_SYS_PTRACE" in said(place)
    assert trainers.job not in controller.jobs


def test_without_raw_sockets_it_does_not_start(two_hosts, place):
    process = start(two_hosts, place, "127.0.0.1:9", ("sys_ptrace", "dac_read_search"))
    assert process.wait(STARTED_S) == 2
    assert "path probes cannot be sent without CAP_NET_RAW" in said(place)


async def test_an_agent_whose_interface_is_deleted_says_so_and_ends(
    two_hosts, controller, place, eventually_async
):
    process = start(two_hosts, place, controller.target, CAPABILITIES)
    await eventually_async(lambda: "controller connected" in said(place), STARTED_S)
    two_hosts.inside(two_hosts.a, lambda: subprocess.run(["ip", "link", "del", "data0"], check=True))
    code = await asyncio.to_thread(process.wait, STARTED_S)
    assert code == 2
    assert "agent.interface: data0 is gone" in said(place)
