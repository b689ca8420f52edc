"""finsy, a controller that knows nothing of this switch, and real packets on real interfaces."""

import asyncio
import socket
from pathlib import Path

import finsy as fy
import pytest

PROGRAMS = Path(__file__).parent / "programs"
OPTIONS = fy.SwitchOptions(
    p4info=PROGRAMS / "features.p4info.txtpb", p4blob=PROGRAMS / "features.json", device_id=1
)
HOST = "02:00:00:00:00:02"
FRAME = bytes.fromhex("0200000000020200000000011234") + bytes(range(100))


@pytest.fixture
def hosts(veth):
    """Raw sockets at the far ends of ports 1 and 2."""
    opened = []
    for number in (1, 2):
        veth(f"s{number}", f"h{number}")
        host = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        host.bind((f"h{number}", 0))
        host.settimeout(5)
        opened.append(host)
    yield opened
    for host in opened:
        host.close()


@pytest.fixture
def running(switch, hosts):
    return switch("-i", "1@s1", "-i", "2@s2", "--device-id", "1", "--no-p4")


async def arrival(host):
    return await asyncio.to_thread(host.recv, 2000)


async def test_it_pushes_a_program_and_packets_flow(running, hosts):
    async with fy.Switch("sw", running.address, OPTIONS) as switch:
        await switch.write(
            [
                +fy.P4TableEntry(
                    "mac", match=fy.P4TableMatch(dst=HOST), action=fy.P4TableAction("forward", port=2)
                ),
                ~fy.P4TableEntry("mac", is_default_action=True, action=fy.P4TableAction("punt", reason=3)),
            ]
        )
        hosts[0].send(FRAME)
        assert await arrival(hosts[1]) == FRAME
        entries = [
            entry async for entry in switch.read(fy.P4TableEntry("mac", counter_data=fy.P4CounterData()))
        ]
        assert len(entries) == 1
        assert entries[0].match == {"dst": 0x020000000002}
        assert (entries[0].counter_data.packet_count, entries[0].counter_data.byte_count) == (1, len(FRAME))
        async with asyncio.timeout(10):
            packets = switch.read_packets()
            waiting = asyncio.ensure_future(anext(packets))
            await asyncio.sleep(0)
            hosts[1].send(FRAME[6:12] + FRAME[6:])
            packet = await waiting
            assert packet.payload == FRAME[6:12] + FRAME[6:]
            assert (packet["ingress_port"], packet["reason"]) == (2, 3)
        await switch.write([fy.P4PacketOut(FRAME, egress_port=1, pad=0)])
        assert await arrival(hosts[0]) == FRAME


async def test_it_finds_its_program_again_and_deletes_everything(running):
    async with fy.Switch("sw", running.address, OPTIONS) as switch:
        await switch.write(
            [
                +fy.P4TableEntry(
                    "mac", match=fy.P4TableMatch(dst=n), action=fy.P4TableAction("forward", port=2)
                )
                for n in range(50)
            ]
        )
    async with fy.Switch("sw", running.address, OPTIONS) as switch:  # the cookie is the same: no push
        assert len([entry async for entry in switch.read(fy.P4TableEntry("mac"))]) == 50
        await switch.delete_all()
        assert [entry async for entry in switch.read(fy.P4TableEntry("mac"))] == []


async def test_digests_and_idle_timeouts_reach_it(running, hosts):
    async with fy.Switch("sw", running.address, OPTIONS) as switch, asyncio.timeout(15):
        await switch.write(
            [
                +fy.P4DigestEntry("learn_t", max_list_size=1, max_timeout_ns=0, ack_timeout_ns=10**9),
                ~fy.P4TableEntry("source", is_default_action=True, action=fy.P4TableAction("learn")),
            ]
        )
        digests = switch.read_digests("learn_t")
        waiting = asyncio.ensure_future(anext(digests))
        await asyncio.sleep(0)
        hosts[0].send(FRAME)
        learnt = await waiting
        assert learnt.data == [{"mac": 0x020000000001, "port": 1}]
        idle = switch.read_idle_timeouts()
        expired = asyncio.ensure_future(anext(idle))
        await asyncio.sleep(0)
        entry = fy.P4TableEntry(
            "mac",
            match=fy.P4TableMatch(dst=HOST),
            action=fy.P4TableAction("forward", port=2),
            idle_timeout_ns=10**8,
        )
        await switch.insert([entry])
        assert (await expired).table_entry[0].match == {"dst": 0x020000000002}


async def test_two_controllers_share_it_by_arbitration(running):
    first = fy.Switch("first", running.address, OPTIONS)
    second = fy.Switch("second", running.address, OPTIONS(initial_election_id=9))
    demoted = asyncio.Event()
    first.ee.add_listener(fy.SwitchEvent.BECOME_BACKUP, lambda _: demoted.set())
    async with asyncio.timeout(15):
        async with first:
            async with second:
                assert first.is_primary
                assert not second.is_primary
            async with fy.Switch("third", running.address, OPTIONS(initial_election_id=11)) as third:
                assert third.is_primary
                await demoted.wait()
                assert not first.is_primary
