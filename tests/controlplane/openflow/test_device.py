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
from structlog.testing import capture_logs

from controlplane.model import FiveTuple
from controlplane.openflow.device import OpenFlowDevice
from controlplane.openflow.entries import ECMP_GROUPS, PROBES_A_SECOND, PROBES_AT_ONCE
from controlplane.southbound import Desired, Fabric, FlowEntry, GroupLevel, LevelQueue, NextHop, Result, Setup
from controlplane.southbound import session as session_module
from controlplane.southbound.diff import Change
from controlplane.southbound.tables import Call
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
        for _ in range(3):  # the switch may connect anew while it is being set up
            await connected(fabric)
            outcome = (await fabric.apply({"V1": desired}))["V1"]
            if outcome.result is Result.APPLIED:
                break
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


FOREIGN = (
    "table=5,ip,nw_dst=192.0.2.1,actions=drop",  # of the priority that ovs-ofctl gives by itself
    "table=5,priority=0,actions=drop",
    "table=5,priority=1,actions=drop",
    "table=0,priority=20,in_port=LOCAL,actions=drop",
    "table=1,priority=100,arp,actions=drop",
    "table=2,priority=100,tcp,nw_src=10.0.0.0/8,tp_dst=80,actions=drop",
    "table=3,priority=100,metadata=5,actions=drop",
    "table=4,priority=100,ipv6,actions=drop",
    "table=6,priority=30,metadata=5,actions=drop",
)


def entries(ovs):
    """Return the flow entries, in no order."""
    return sorted(
        line.strip() for line in ovs.ofctl("dump-flows", "--no-stats").splitlines() if "actions=" in line
    )


async def test_entries_of_somebody_elses_are_left_alone(ovs, listen, desired):
    for entry in FOREIGN:
        ovs.ofctl("add-flow", entry)
    before = entries(ovs)
    assert len(before) == len(FOREIGN)
    async with Fabric([OpenFlowTarget("V1", 7, 7, listen)], PROGRAM) as fabric:
        with capture_logs() as logs:
            await connected(fabric)
        assert [line["count"] for line in logs if line["event"] == "entries of somebody else's"] == [
            len(FOREIGN)
        ]
        assert not any(fabric.status()["V1"].entries.values())
        outcome = (await fabric.apply({"V1": desired}))["V1"]
        assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)
        assert fabric.held("V1").flows == desired.flows
    assert set(before) < set(entries(ovs))


@pytest.fixture
def watched(monkeypatch):
    """Have switches looked in on often."""
    monkeypatch.setattr(session_module, "_LOOK_IN_S", 0.3)


async def test_an_emptied_switch_is_noticed_while_rankings_go_on(watched, ovs, fabric, desired):
    before = {entry for entry in entries(ovs) if not re.search("table=[13],", entry)}  # but for the ranking
    await asyncio.to_thread(ovs.ofctl, "del-flows")
    deadline = time.monotonic() + 15
    turn = 0
    while not before <= set(entries(ovs)):
        assert time.monotonic() < deadline
        turn += 1
        outcome = (await fabric.apply({"V1": replace(desired, groups={1: GroupLevel(turn % 6)})}))["V1"]
        assert outcome.result is Result.APPLIED
        await asyncio.sleep(0.1)


async def settled(condition):
    """Wait until ``condition()``; then see that nothing is mended any more for several looks."""
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
    with capture_logs() as logs:
        await asyncio.sleep(1.5)
    assert [line["event"] for line in logs] == []
    assert condition()


@pytest.fixture
def two_ways(desired):
    hops = (NextHop(2, "02:00:00:00:00:02"), NextHop(3, "02:00:00:00:00:03"))
    return with_route(desired, hops)


def with_route(desired, hops):
    routes = {**desired.setup.routes, ip_network("10.9.0.0/16"): hops}
    return replace(desired, setup=replace(desired.setup, routes=routes))


@pytest.mark.parametrize(
    "deletion",
    [
        ("del-meters",),
        ("del-flows", "table=0,ip,in_port=1"),
        ("del-flows", "--strict", "table=0,priority=10,ip,ip_dscp=23"),
        ("del-flows", "--strict", "table=1,priority=100,ip,ip_dscp=23"),
        ("del-flows", "table=2,tcp,tp_dst=1000"),
        ("del-flows", "--strict", "table=3,priority=0"),
        ("del-flows", "table=4,metadata=0x2000000/0xff000000"),
        ("del-flows", "table=5,ip,nw_dst=10.0.2.0/24"),
        ("del-flows", "table=6"),
        ("del-groups",),
        ("mod-group", "group_id=0x4c560001,type=select,bucket=actions=output:1"),
    ],
    ids=" ".join,
)
async def test_what_somebody_deletes_on_an_idle_switch_is_written_again(
    watched, ovs, fabric, two_ways, deletion
):
    outcome = (await fabric.apply({"V1": two_ways}))["V1"]
    assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)

    def state():
        return set(ovs.ofctl("dump-meters").splitlines()[1:]), set(ovs.ofctl("dump-groups").splitlines()[1:])

    flows, others = entries(ovs), state()
    ovs.ofctl(*deletion)
    assert (entries(ovs), state()) != (flows, others)
    await settled(lambda: (entries(ovs), state()) == (flows, others))


@pytest.mark.parametrize(
    "alteration",
    [
        ("mod-flows", "table=2,tcp,tp_dst=29500,actions=goto_table:3"),
        ("add-flow", "table=3,priority=0,actions=goto_table:4"),
        ("add-flow", "table=5,priority=25,ip,nw_dst=10.0.2.0/24,actions=drop"),
        ("mod-flows", "table=5,ip,nw_dst=10.9.0.0/16,actions=drop"),
        ("mod-flows", "--strict", "table=1,priority=100,ip,ip_dscp=23,actions=goto_table:4"),
        ("mod-flows", "--strict", "table=2,priority=0,actions=drop"),
    ],
    ids=" ".join,
)
async def test_what_somebody_alters_on_an_idle_switch_is_written_again_and_told_once(
    watched, ovs, fabric, two_ways, alteration
):
    outcome = (await fabric.apply({"V1": two_ways}))["V1"]
    assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)
    flows = entries(ovs)
    ovs.ofctl(*alteration)
    altered = entries(ovs)
    assert (len(altered), altered == flows) == (len(flows), False)
    with capture_logs() as logs:
        await settled(lambda: entries(ovs) == flows)
    assert [line["event"] for line in logs].count("switch holds something else than thought") == 1


@pytest.mark.parametrize(
    "change",
    [("del-flows", "table=3"), ("mod-flows", "table=3,metadata=1/0xffff,actions=goto_table:4")],
    ids=" ".join,
)
async def test_a_ranking_that_somebody_deletes_or_alters_on_an_idle_switch_is_written_again(
    watched, ovs, fabric, change
):
    ovs.ofctl(*change)

    def in_force():
        bank = re.search(r"table=1, priority=1 actions=write_metadata:(\w+)/", "\n".join(entries(ovs)))[1]
        rank = r"table=3, priority=100,metadata=(\w+)/0x1ffff actions=write_metadata:(\w+)/"
        levels = {int(key, 16): int(value, 16) for key, value in re.findall(rank, "\n".join(entries(ovs)))}
        return levels.get(int(bank, 16) + 1)

    await settled(lambda: in_force() == 3 << 24 and "table=3, priority=0 " in "\n".join(entries(ovs)))


async def test_flows_that_come_and_go_are_not_taken_for_somebody_elses_doing(watched, ovs, fabric, desired):
    with capture_logs() as logs:
        for turn in range(10):
            flows = {
                FLOW: FlowEntry(1 + turn % 2, 1),
                **{replaced(FLOW, 2000 + port): FlowEntry(1, port) for port in range(turn % 3 * 5)},
                FiveTuple(IPv4Address(HERE), IPv4Address(THERE), 17, 50000, 4791, 9): FlowEntry(1, 99),
            }
            ranking = {group: GroupLevel(turn % 6) for group in range(1, 2 + turn % 4)}
            await fabric.apply({"V1": replace(desired, flows=flows, groups=ranking)})
            await asyncio.sleep(0.4)
    assert "switch holds something else than thought" not in [line["event"] for line in logs]


def replaced(flow, port):
    return FiveTuple(flow.source, flow.destination, flow.protocol, port, flow.destination_port)


async def test_groups_of_somebody_elses_are_left_alone(ovs, listen, two_ways):
    ovs.ofctl("add-group", "group_id=1,type=select,bucket=actions=output:1")
    ovs.ofctl("add-flow", "table=20,priority=5,ip,actions=group:1")
    async with Fabric([OpenFlowTarget("V1", 7, 7, listen)], PROGRAM) as fabric:
        await connected(fabric)
        outcome = (await fabric.apply({"V1": two_ways}))["V1"]
        assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)
    numbers = re.findall(r"group_id=(\d+)", ovs.ofctl("dump-groups"))
    assert sorted(map(int, numbers)) == [1, ECMP_GROUPS + 1]
    assert "actions=group:1" in ovs.ofctl("dump-flows", "table=20")


async def test_a_group_that_is_refused_is_not_held(ovs, fabric, desired, two_ways):
    nowhere = (NextHop(2, "02:00:00:00:00:02"), NextHop(65400, "02:00:00:00:00:03"))
    await fabric.apply({"V1": with_route(desired, nowhere)})
    status = fabric.status()["V1"]
    assert (status.entries["ecmp"], status.refused) == (0, {"ecmp": 2, "ipv4_lpm": 1})
    outcome = (await fabric.apply({"V1": two_ways}))["V1"]
    assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)
    assert fabric.status()["V1"].entries["ecmp"] == 2
    await fabric.apply({"V1": with_route(desired, nowhere)})
    status = fabric.status()["V1"]
    assert (status.entries["ecmp"], status.refused) == (2, {"ecmp": 1})
    assert ovs.ofctl("dump-groups").count("output:") == 2


async def test_a_group_of_ours_that_somebody_else_has_made_is_taken_over(ovs, fabric, two_ways):
    ovs.ofctl("add-group", f"group_id={ECMP_GROUPS + 1},type=all,bucket=actions=output:1")
    outcome = (await fabric.apply({"V1": two_ways}))["V1"]
    assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)
    (group,) = ovs.ofctl("dump-groups").splitlines()[1:]
    assert "type=select" in group
    assert re.findall(r"output:\"?p?(\d)", group) == ["2", "3"]


async def test_a_read_has_its_whole_deadline_however_many_are_before_it(ovs, listen, desired):
    async with Fabric([OpenFlowTarget("V1", 7, 7, listen)], PROGRAM, deadline_s=0.5) as fabric:
        await connected(fabric)
        device = fabric._sessions["V1"].device()
        async with device._one_at_a_time:
            write = asyncio.create_task(device.write([Change("active_bank", (), Call("set_bank", (1,)))]))
            await asyncio.sleep(0.8)
        assert await write == {}
        assert fabric.status()["V1"].sessions == 1


async def test_that_a_connection_from_before_ends_does_not_end_the_session(listen):
    device = OpenFlowDevice(OpenFlowTarget("V1", 7, 7, listen), INT_DSCP, 1, 5.0)
    device._receive(None, None)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(device.listen(lambda: None, lambda packet, hop: None), 0.1)
