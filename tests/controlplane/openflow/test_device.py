"""The session with a real ovs-vswitchd: its userspace datapath, on dummy ports."""

import asyncio
import contextlib
import os
import re
import shutil
import socket
import struct
import subprocess
import time
from dataclasses import replace
from ipaddress import IPv4Address, ip_network

import pytest

from controlplane.model import FiveTuple
from controlplane.openflow.entries import PROBES_A_SECOND, PROBES_AT_ONCE
from controlplane.southbound import Desired, Fabric, FlowEntry, GroupLevel, LevelQueue, NextHop, Result, Setup
from controlplane.southbound.target import OpenFlowTarget
from tests.controlplane.southbound.helpers import PROGRAM, connected

SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
TOOLS = ("ovsdb-server", "ovsdb-tool", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl", "ovs-appctl")

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, TOOLS)),
    reason="Open vSwitch is not installed: apt-get install openvswitch-switch",
)

INT_DSCP = PROGRAM.constants["INT_DSCP"]
HERE, THERE = "10.0.1.1", "10.0.2.2"
FLOW = FiveTuple(IPv4Address(HERE), IPv4Address(THERE), 6, 1000, 29500)


@pytest.fixture(scope="module")
def listen():
    """Where the controller listens: os-ken has one address a process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


class Ovs:
    """One bridge, br0, with the ports 1 and 2 to hosts and 3 to another switch."""

    def __init__(self, folder, controller):
        self._folder, self._controller = folder, controller
        self._processes = []

    def start(self):
        database, log = self._folder / "conf.db", (self._folder / "log").open("ab")
        subprocess.run(["ovsdb-tool", "create", database, SCHEMA], check=True)
        self._spawn(log, "ovsdb-server", str(database), f"--remote=punix:{self._folder}/db.sock")
        self._wait_for("db.sock")
        self._vsctl("--no-wait", "init")
        self._spawn(log, "ovs-vswitchd", f"unix:{self._folder}/db.sock", "--enable-dummy", "--disable-system")
        self._vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy",
                    "protocols=OpenFlow13", "fail_mode=secure", "other_config:datapath-id=0000000000000007",
                    *(word for port in (1, 2, 3) for word in (
                        "--", "add-port", "br0", f"p{port}", "--", "set", "interface", f"p{port}",
                        "type=dummy", f"ofport_request={port}")))  # fmt: skip
        self._vsctl("set-controller", "br0", f"tcp:{self._controller}",
                    "--", "set", "controller", "br0", "max_backoff=1000")  # fmt: skip

    def close(self):
        for process in reversed(self._processes):
            process.kill()
            process.wait()

    def ofctl(self, command, *words):
        return self._run("ovs-ofctl", "-O", "OpenFlow13", command, f"unix:{self._folder}/br0.mgmt", *words)

    def receive(self, port, *packets):
        """Have ``packets`` come in by ``port``."""
        target = f"--target={self._folder}/vswitchd.ctl"
        self._run("ovs-appctl", target, "netdev-dummy/receive", f"p{port}", *(p.hex() for p in packets))

    def passed(self, port):
        """Return the packets that have left by ``port``, as the switch counts them."""
        return int(re.search(r"tx pkts=(\d+)", self.ofctl("dump-ports", str(port)))[1])

    def _run(self, *command):
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout

    def _vsctl(self, *words):
        self._run("ovs-vsctl", f"--db=unix:{self._folder}/db.sock", "--timeout=20", *words)

    def _spawn(self, log, daemon, *words):
        name = daemon.removeprefix("ovs-")
        files = [f"--pidfile={self._folder}/{name}.pid", f"--unixctl={self._folder}/{name}.ctl"]
        self._processes.append(
            subprocess.Popen(
                [daemon, *words, *files],
                stdout=log,
                stderr=log,
                env={**os.environ, "OVS_RUNDIR": str(self._folder)},
            )
        )

    def _wait_for(self, name):
        deadline = time.monotonic() + 20
        while not (self._folder / name).exists():
            assert time.monotonic() < deadline, (self._folder / "log").read_text()
            time.sleep(0.02)


@pytest.fixture
def ovs(tmp_path, listen):
    with contextlib.closing(Ovs(tmp_path, listen)) as switch:
        switch.start()
        yield switch


@pytest.fixture
def desired():
    routes = {
        ip_network("10.0.1.0/24"): (NextHop(1, "02:00:00:00:00:01"),),
        ip_network("10.0.2.0/24"): (NextHop(3, "02:00:00:00:00:03"),),
    }
    levels = {level: LevelQueue(level) for level in range(8)}
    setup = Setup(levels, 7, frozenset({1, 2}), frozenset({3}), routes, control_level=7)
    return Desired(setup, {FLOW: FlowEntry(1, 1)}, {1: GroupLevel(3)})


@pytest.fixture
async def fabric(ovs, listen, desired):
    async with Fabric([OpenFlowTarget("V1", 7, 7, listen)], PROGRAM) as fabric:
        await connected(fabric)
        outcome = (await fabric.apply({"V1": desired}))["V1"]
        assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)
        yield fabric


def packet(source=HERE, destination=THERE, protocol=6, dscp=INT_DSCP):
    """Return an IPv4 packet without checksums, which the switch does not look at."""
    addresses = IPv4Address(source).packed + IPv4Address(destination).packed
    transport = struct.pack("!HHIIBBHHH", 1000, 29500, 0, 0, 5 << 4, 0x10, 0, 0, 0)
    ip = struct.pack("!BBHHHBBH", 0x45, dscp << 2, 20 + len(transport), 0, 0, 64, protocol, 0) + addresses
    return bytes.fromhex("02000000000a 02000000000b 0800") + ip + transport


async def send(ovs, port, one, count):
    """Have ``one`` come in ``count`` times, in pieces that a dummy port's queue has room for."""
    for start in range(0, count, 50):
        await asyncio.to_thread(ovs.receive, port, *[one] * min(50, count - start))
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.2)


async def test_what_it_holds_is_read_back(ovs, fabric, desired, listen):
    assert fabric.held("V1").flows == desired.flows
    assert fabric.held("V1").groups == desired.groups
    meters = ovs.ofctl("dump-meters").splitlines()[1:]
    assert [line.split()[0] for line in meters if line.startswith("meter=")] == ["meter=1", "meter=2"]
    bands = [line.split() for line in meters if "type=" in line]
    assert bands == [["type=drop", f"rate={PROBES_A_SECOND}", f"burst_size={PROBES_AT_ONCE}"]] * 2


async def test_a_host_cannot_flood_the_control_level_with_what_is_marked_as_probes(ovs, fabric):
    await send(ovs, 1, packet(dscp=0), 3000)
    assert ovs.passed(3) == 3000, "what is not marked is not metered"
    began = time.monotonic()
    await send(ovs, 1, packet(), 3000)
    took_s = time.monotonic() - began
    metered = ovs.passed(3) - 3000
    # Open vSwitch's bucket has room for the burst and a second's rate.
    assert PROBES_AT_ONCE <= metered <= PROBES_AT_ONCE + PROBES_A_SECOND * (2 + took_s)
    await send(ovs, 2, packet(), 100)
    assert ovs.passed(3) == 3000 + metered + 100, "each host has a meter of its own"


async def test_what_cannot_be_a_probe_and_is_marked_as_one_is_dropped(ovs, fabric):
    await send(ovs, 1, packet(protocol=1), 10)
    await send(ovs, 1, packet(protocol=1, dscp=0), 7)
    assert ovs.passed(3) == 7


async def test_a_probe_from_another_switch_goes_to_the_controller_and_not_to_the_host(ovs, fabric):
    await send(ovs, 3, packet(THERE, HERE), 1)
    await send(ovs, 3, packet(THERE, HERE, dscp=0), 1)
    assert ovs.passed(1) == 1
    assert fabric.status()["V1"].bad_reports == 1, "this one has no INT in it"


async def test_a_meter_that_somebody_has_altered_is_made_anew(ovs, listen, desired):
    target = OpenFlowTarget("V1", 7, 7, listen)
    async with Fabric([target], PROGRAM) as fabric:
        await connected(fabric)
        await fabric.apply({"V1": desired})
    ovs.ofctl("mod-meter", "meter=1,pktps,burst,bands=type=drop,rate=1000000,burst_size=1")
    ovs.ofctl("del-meter", "meter=2")  # and with it, the entries that need it
    async with Fabric([target], PROGRAM) as fabric:
        await connected(fabric)
        outcome = (await fabric.apply({"V1": desired}))["V1"]
        # The two ports; and the three rows for which there are no entries, so that none are read back.
        assert (outcome.result, outcome.refused, outcome.updates) == (Result.APPLIED, 0, 2 + 3)
    assert ovs.ofctl("dump-meters").count(f"rate={PROBES_A_SECOND}") == 2


async def test_a_port_that_leads_to_a_switch_from_now_on(ovs, fabric, desired):
    changed = replace(desired.setup, host_ports=frozenset({1}), fabric_ports=frozenset({2, 3}))
    outcome = (await fabric.apply({"V1": replace(desired, setup=changed)}))["V1"]
    assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)
    await send(ovs, 2, packet(), 1500)
    assert ovs.passed(3) == 1500
    outcome = (await fabric.apply({"V1": desired}))["V1"]
    assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)
    assert len(re.findall(r"in_port=p?2\b.*meter:2", ovs.ofctl("dump-flows"))) == 4
