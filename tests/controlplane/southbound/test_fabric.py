"""All switches as one: their end, their probes and their counters. What P4Runtime asks for is in topics/."""

import asyncio
import subprocess
import sys
import textwrap
from dataclasses import replace
from ipaddress import IPv4Address, ip_network

import pytest
from structlog.testing import capture_logs

from controlplane.int_report import IntReport
from controlplane.model import FiveTuple, Link
from controlplane.paths import INSTRUCTIONS, path_of
from controlplane.southbound import Desired, Fabric, LevelQueue, NextHop, Result, Setup, Target
from controlplane.southbound.target import OpenFlowTarget
from leveller.errors import UserError
from tests.controlplane.southbound.helpers import PROGRAM, connected

NODE = 4711


def test_a_p4info_that_is_not_the_contract_is_the_users_to_mend(tmp_path):
    other = tmp_path / "other.p4info.txtpb"
    other.write_text(PROGRAM.p4info.read_text().replace('"burst_gap"', '"bursts"'))
    with pytest.raises(UserError, match=r"other.p4info.txtpb: has no table 'burst_gap'"):
        Fabric([], replace(PROGRAM, p4info=other))


async def test_leaving_ends_every_task_and_answers_every_caller(switches, desire):
    hung = switches()
    fabric = Fabric([hung.target()], PROGRAM, deadline_s=30.0)
    async with fabric:
        await connected(fabric)
        hung.freeze()
        waiting = asyncio.create_task(fabric.apply({"S1": desire(1)}))
        queued = asyncio.create_task(fabric.apply({"S1": desire(2)}))
        await asyncio.sleep(0.2)
    assert {(await each)["S1"].result for each in (waiting, queued)} <= {Result.FAILED, Result.SUPERSEDED}
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert not [task for task in others if task.get_name().startswith("switch ")]


@pytest.fixture
def namespace(request):
    """A network namespace with two veth pairs, sw1-h1 and sw2-h2, all up."""
    name = f"sb-{request.node.name[-12:].strip('[]')}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    for number in (1, 2):
        for words in (
            f"link add sw{number} type veth peer name h{number}",
            f"link set sw{number} up",
            f"link set h{number} up",
        ):
            subprocess.run(["ip", "-n", name, *words.split()], check=True)
    yield name
    subprocess.run(["ip", "netns", "del", name], check=True)


def send(namespace, interface, frame):
    program = textwrap.dedent("""
        import socket, sys
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
            raw.bind((sys.argv[1], 0))
            raw.send(bytes.fromhex(sys.argv[2]))
    """)
    command = ["ip", "netns", "exec", namespace, sys.executable, "-c", program, interface, frame.hex()]
    subprocess.run(command, check=True)


def fresh_probe(tcp_flow):
    """An INT-MD probe with an empty stack, by the INT 2.1 text: shim, header, D bit."""
    hop_words = sum(2 if bit in (4, 5, 6) else 1 for bit in range(9) if INSTRUCTIONS & 0x8000 >> bit)
    dscp = PROGRAM.constants["INT_DSCP"]
    words = [0x10030000, 0x28000000 | hop_words << 8 | 16, INSTRUCTIONS << 16, 0]
    probe = b"".join(word.to_bytes(4) for word in words)
    tcp = (
        tcp_flow.source_port.to_bytes(2)
        + tcp_flow.destination_port.to_bytes(2)
        + bytes(8)
        + bytes.fromhex("5010ffff00000000")
    )
    ip = bytearray(bytes.fromhex("4500000000000000400600000000000000000000"))
    ip[1] = dscp << 2
    ip[2:4] = (20 + len(tcp) + len(probe)).to_bytes(2)
    ip[12:20] = tcp_flow.source.packed + tcp_flow.destination.packed
    total = sum(int.from_bytes(ip[at : at + 2]) for at in range(0, 20, 2))
    total = (total & 0xFFFF) + (total >> 16)
    ip[10:12] = (~((total & 0xFFFF) + (total >> 16)) & 0xFFFF).to_bytes(2)
    return bytes.fromhex("0200000000010200000000020800") + bytes(ip) + tcp + probe


async def test_packets_that_are_no_probes_are_counted_and_do_not_fill_the_log():
    fabric = Fabric([Target("S1", "127.0.0.1:1", 1)], PROGRAM)
    with capture_logs() as logs:
        for _ in range(1000):
            fabric._packet("S1", b"\x1b[2J" * 20, None)
    assert fabric.status()["S1"].bad_reports == 1000
    assert [line["so_far"] for line in logs] == [1 << power for power in range(10)]


async def test_a_sunk_probe_becomes_a_path_and_the_counters_are_read(
    switches, namespace, tmp_path, desire, eventually
):
    switch = switches(
        address=f"unix:{tmp_path}/switch.sock",
        prefix=("ip", "netns", "exec", namespace),
        interfaces=("1@sw1", "2@sw2"),
    )
    setup = Setup(
        {level: LevelQueue(level) for level in range(8)},
        NODE,
        frozenset({1, 2}),
        routes={ip_network("10.0.2.0/24"): (NextHop(2, "02:00:00:00:00:02"),)},
        control_level=7,
    )
    flow = FiveTuple(IPv4Address("10.0.1.1"), IPv4Address("10.0.2.2"), 6, 1001, 29500)
    reports: list[tuple[str, IntReport]] = []
    target = Target("S1", switch.address, 1)
    async with Fabric([target], PROGRAM, on_report=lambda *report: reports.append(report)) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": desire(5, setup=setup)})
        send(namespace, "h1", fresh_probe(flow))

        async def told():
            return bool(reports)

        await eventually(told)
        ((name, report),) = reports
        assert (name, report.flow) == ("S1", flow)
        assert path_of(report, {NODE: "S1"}) == (Link("S1", 2),)
        assert report.hops[0].ingress_port == 1
        assert report.hops[0].ingress_ns > 0
        packets, octets = (await fabric.read_counter("S1", "ingress_port_counter"))[1]
        assert packets >= 1
        assert octets >= len(fresh_probe(flow))
        assert 1 in await fabric.read_counter("S1", "int_sunk")
        counters = await fabric.read_flow_counters("S1")
        assert counters.keys() == {flow}
        other = flow._replace(source_port=9)
        assert await fabric.read_flow_counters("S1", [other, flow]) == counters
        assert await fabric.read_flow_counters("S1", [other]) == {}
        many = [flow._replace(source_port=port) for port in range(1000, 1400)]
        assert await fabric.read_flow_counters("S1", [*many, flow]) == counters
        assert fabric.status()["S1"].bad_reports == 0
        with pytest.raises(KeyError):
            await fabric.read_counter("S1", "no_such_counter")
        assert (await fabric.apply({"S1": Desired(setup, {}, {})}))["S1"].result is Result.APPLIED


def test_openflow_without_os_ken_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "os_ken", None)
    with pytest.raises(UserError, match=r"switch leaf4: .*os-ken is not installed: pip install"):
        Fabric([OpenFlowTarget("leaf4", 4, 4, "127.0.0.1:6653")], PROGRAM)
