"""Several controllers, several switches, and switches that die, hang or come late."""

import asyncio
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from ipaddress import IPv4Address, ip_network

import pytest
from finsy import P4Schema
from finsy.proto import p4r
from structlog.testing import capture_logs

import p4src
from controlplane.int_report import IntReport
from controlplane.model import FiveTuple, Link
from controlplane.paths import INSTRUCTIONS, path_of
from controlplane.southbound import Desired, Fabric, LevelQueue, NextHop, Result, Setup, SwitchError, Target
from controlplane.southbound.arbitration import Election
from controlplane.southbound.connection import Connection, LostPrimacyError
from controlplane.southbound.contract import bind
from controlplane.southbound.diff import Change
from controlplane.southbound.encode import Encoder
from controlplane.southbound.tables import Call
from leveller.errors import UserError

PROGRAM = p4src.program("v1model")


async def connected(fabric):
    await asyncio.wait_for(fabric.connected(), 20)
    return fabric


# -- arbitration


async def test_the_higher_rank_is_primary_and_a_backup_takes_over(switch, desire, onlooker, eventually):
    async with Fabric([switch.target()], PROGRAM, election_id=1) as backup:
        await connected(backup)
        assert backup.status()["S1"].primary
        async with Fabric([switch.target()], PROGRAM, election_id=2) as primary:
            await connected(primary)

            async def deposed():
                return not backup.status()["S1"].primary

            await eventually(deposed)
            assert (backup.status()["S1"].connected, primary.status()["S1"].primary) == (True, True)
            assert (await primary.apply({"S1": desire(1, 2)}))["S1"].result is Result.APPLIED
            assert (await backup.apply({"S1": desire(6, 5)}))["S1"].result is Result.BACKUP
            assert await onlooker(switch).levels() == {1: 1, 2: 2}

        async def taken_over():
            return await onlooker(switch).levels() == {1: 6, 2: 5}

        await eventually(taken_over)
        assert backup.status()["S1"].primary
        assert (backup.status()["S1"].sessions, backup.status()["S1"].pipeline_pushes) == (1, 1)


async def test_of_two_controllers_with_the_same_rank_the_newer_leads_and_they_do_not_fight(
    switch, desire, onlooker, eventually
):
    async with Fabric([switch.target()], PROGRAM) as older:
        await connected(older)
        async with Fabric([switch.target()], PROGRAM) as newer:
            await connected(newer)
            await asyncio.sleep(0.5)
            assert (older.status()["S1"].primary, newer.status()["S1"].primary) == (False, True)
            assert (await older.apply({"S1": desire(1)}))["S1"].result is Result.BACKUP
            assert (await newer.apply({"S1": desire(2)}))["S1"].result is Result.APPLIED
            assert (older.status()["S1"].sessions, newer.status()["S1"].sessions) == (1, 1)

        async def taken_over():
            return await onlooker(switch).levels() == {1: 1}

        await eventually(taken_over)


async def test_a_duplicate_election_id_ends_a_session_and_the_next_has_another(
    switch, desire, monkeypatch, eventually
):
    fixed = iter((1_000_000_000, 1_000_000_000))
    begin = Election.begin

    def begin_alike(self):
        self.id = begin(self)
        if (same := next(fixed, None)) is not None:
            self.id = 1 << 64 | same
        return self.id

    monkeypatch.setattr(Election, "begin", begin_alike)
    async with Fabric([switch.target()], PROGRAM) as first:
        await connected(first)
        seen = []
        async with Fabric([switch.target()], PROGRAM, on_status=seen.append) as second:
            await connected(second)
            assert "another client has election id" in seen[0].error
            assert second.status()["S1"].primary
            assert (await second.apply({"S1": desire(2)}))["S1"].result is Result.APPLIED


async def test_the_ghost_of_a_lost_session_does_not_keep_its_controller_out(switch, desire, onlooker):
    """The switch still holds the stream of a session that its controller has given up."""
    schema = P4Schema(PROGRAM.p4info, PROGRAM.json)
    ghost = Connection(switch.address, switch.device_id, schema, Election(1), 5.0)
    await ghost.open()
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        assert fabric.status()["S1"].primary
        assert (await fabric.apply({"S1": desire(3)}))["S1"].result is Result.APPLIED
        encoder = Encoder(bind(schema.p4info, "leveller.p4info.txtpb"))
        stale = encoder.encoded(Change("active_bank", (), Call("set_bank", (0,))))
        with pytest.raises(LostPrimacyError):
            await ghost.write([stale])
        assert await onlooker(switch).levels() == {1: 3}
        await ghost.close()


async def test_a_tool_that_connects_does_not_depose_the_controller(switch, desire, onlooker):
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": desire(3)})
        assert await onlooker(switch).levels() == {1: 3}
        assert fabric.status()["S1"].primary
        assert (await fabric.apply({"S1": desire(4)}))["S1"].result is Result.APPLIED


# -- pipeline


async def test_the_pipeline_is_pushed_once_and_again_only_for_another_program(
    switch, desire, onlooker, tmp_path
):
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        assert fabric.status()["S1"].pipeline_pushes == 1
        await fabric.apply({"S1": desire(1, 2)})
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        assert fabric.status()["S1"].pipeline_pushes == 0
    assert await onlooker(switch).levels() == {1: 1, 2: 2}
    other = tmp_path / "other.json"
    other.write_text(PROGRAM.json.read_text() + "\n")
    async with Fabric([switch.target()], replace(PROGRAM, json=other)) as fabric:
        await connected(fabric)
        assert fabric.status()["S1"].pipeline_pushes == 1
        assert fabric.held("S1").groups == {}
        await fabric.apply({"S1": desire(5)})
        assert await onlooker(switch).levels() == {1: 5}


async def test_a_program_that_the_switch_refuses_is_said(switch, tmp_path, eventually):
    bad = tmp_path / "bad.json"
    bad.write_text("no program")
    async with Fabric([switch.target()], replace(PROGRAM, json=bad)) as fabric:

        async def said():
            return (fabric.status()["S1"].error or "").startswith("pushing the pipeline: ")

        await eventually(said)
        assert not fabric.status()["S1"].connected


def test_a_p4info_that_is_not_the_contract_is_the_users_to_mend(tmp_path):
    other = tmp_path / "other.p4info.txtpb"
    other.write_text(PROGRAM.p4info.read_text().replace('"burst_gap"', '"bursts"'))
    with pytest.raises(UserError, match=r"other.p4info.txtpb: has no table 'burst_gap'"):
        Fabric([], replace(PROGRAM, p4info=other))


# -- switches that are not there, die, or hang


async def test_a_switch_that_comes_late_is_served_then(switches, desire, onlooker, eventually):
    late = switches(started=False)
    async with Fabric([late.target()], PROGRAM) as fabric:
        began = time.monotonic()
        outcome = (await fabric.apply({"S1": desire(4, 5)}))["S1"]
        assert outcome.result is Result.DISCONNECTED
        assert time.monotonic() - began < 0.5
        assert fabric.held("S1") is None
        with pytest.raises(SwitchError, match="S1"):
            await fabric.read_flow_counters("S1")
        late.start()

        async def served():
            return fabric.status()["S1"].connected and await onlooker(late).levels() == {1: 4, 2: 5}

        await eventually(served)


async def test_a_switch_that_restarts_is_filled_again_and_the_others_served(
    switches, desire, onlooker, eventually
):
    one, two = switches(), switches()
    seen = []
    targets = [one.target("S1"), two.target("S2")]
    async with Fabric(targets, PROGRAM, on_status=seen.append) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": desire(1), "S2": desire(1)})
        one.kill()

        async def noticed():
            return not fabric.status()["S1"].connected

        await eventually(noticed)
        outcomes = await fabric.apply({"S1": desire(5), "S2": desire(5)})
        assert [outcomes[name].result for name in ("S1", "S2")] == [Result.DISCONNECTED, Result.APPLIED]
        one.start()

        async def filled():
            return fabric.status()["S1"].connected and await onlooker(one).levels() == {1: 5}

        await eventually(filled)
        assert fabric.status()["S1"].pipeline_pushes == 2
        assert (fabric.status()["S2"].sessions, fabric.status()["S1"].error) == (1, None)
    states = [status.connected for status in seen if status.name == "S1"]
    assert (states[0], states[-1], False in states) == (True, True, True)


async def test_a_switch_that_hangs_delays_no_other_and_is_reconciled_when_it_wakes(
    switches, desire, onlooker, eventually
):
    hung, well = switches(), switches()
    async with Fabric([hung.target("S1"), well.target("S2")], PROGRAM, deadline_s=1.0) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": desire(1), "S2": desire(1)})
        hung.freeze()
        both = asyncio.create_task(fabric.apply({"S1": desire(2), "S2": desire(2)}))
        await asyncio.sleep(0.01)
        for level in (3, 4, 5):
            began = time.monotonic()
            assert (await fabric.apply({"S2": desire(level)}))["S2"].result is Result.APPLIED
            assert time.monotonic() - began < 0.5
        outcome = (await both)["S1"]
        assert (outcome.result, outcome.flip_s) == (Result.FAILED, None)
        assert "no answer" in outcome.error
        assert 0.9 < outcome.total_s < 3.0
        assert not fabric.status()["S1"].connected
        assert (await fabric.apply({"S1": desire(6)}))["S1"].result is Result.DISCONNECTED
        hung.thaw()

        async def reconciled():
            return fabric.status()["S1"].connected and await onlooker(hung).levels() == {1: 6}

        await eventually(reconciled)
        assert await onlooker(well).levels() == {1: 5}


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


# -- probes and counters

NODE = 4711


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
            fabric._packet("S1", p4r.PacketIn(payload=b"\x1b[2J" * 20))
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
        assert fabric.status()["S1"].bad_reports == 0
        with pytest.raises(KeyError):
            await fabric.read_counter("S1", "no_such_counter")
        assert (await fabric.apply({"S1": Desired(setup, {}, {})}))["S1"].result is Result.APPLIED
