"""A promotion lets packets overtake queued ones of their own flow, unless the reorder guard holds it back."""

import asyncio
import json
import subprocess
import sys
from ipaddress import IPv4Address
from itertools import accumulate
from pathlib import Path

import pytest

from controlplane.model import FiveTuple
from controlplane.southbound import Desired, FlowEntry, GroupLevel
from topo import scenario
from topo.lab import Lab

STREAM = str(Path(__file__).with_name("stream.py"))
BURSTS, PACKETS = 6, 60
GUARD_US = 400_000  # longer than a burst's backlog takes to drain at what the flood leaves, 10 Mbit/s
FLOOD_MBPS = 90
LOW, MIDDLE, HIGH = 0, 3, 6


def udp(lab, source, destination, source_port, destination_port):
    address = [IPv4Address(lab.fabric.hosts[host].ipv4) for host in (source, destination)]
    return FiveTuple(*address, 17, source_port, destination_port)


async def promote_in_mid_burst(lab, connected_fabric, guard_us):
    """Send bursts at the low level and promote in the middle of each; return what arrived, in order."""
    async with connected_fabric(lab) as (fabric, setups):
        flows = {
            udp(lab, "h1", "h2", 49152, 4791): FlowEntry(1, 1),
            udp(lab, "h3", "h4", 5001, 5001): FlowEntry(2, 2),
        }

        async def rank(level):
            groups = {1: GroupLevel(level, guard_us), 2: GroupLevel(MIDDLE)}
            await fabric.apply({name: Desired(setup, flows, groups) for name, setup in setups.items()})

        await rank(LOW)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        total = str(BURSTS * PACKETS)
        receiver = lab.execute("h2", [sys.executable, STREAM, "receive", total], **pipes)
        address = {name: str(host.ipv4) for name, host in lab.fabric.hosts.items()}
        flood = lab.execute("h3", [sys.executable, STREAM, "flood", address["h4"], str(FLOOD_MBPS)])
        sender = lab.execute("h1", [sys.executable, STREAM, "bursts", address["h2"]], **pipes)
        try:
            await asyncio.sleep(1)
            for burst in range(BURSTS):
                sender.stdin.write(b"\n")
                sender.stdin.flush()
                if burst < BURSTS - 1:
                    await asyncio.sleep(0.03)
                    await rank(HIGH)
                    await asyncio.sleep(1)
                if burst < BURSTS - 2:
                    await rank(LOW)
            answer = await asyncio.to_thread(receiver.communicate)
        finally:
            for process in (flood, sender, receiver):
                process.kill()
                process.wait()
                for pipe in (process.stdin, process.stdout):
                    if pipe:
                        pipe.close()
        return json.loads(answer[0])


def overtaken(arrivals):
    """How many packets arrived after one that was sent later."""
    numbers = [number for number, _ in arrivals]
    return sum(number < highest for number, highest in zip(numbers, accumulate(numbers, max), strict=True))


@pytest.fixture
def lab(kind, directory):
    with Lab(scenario.find("pair").fabric.build(), kind, directory) as running:
        yield running


async def test_with_the_guard_a_promotion_reorders_nothing(lab, connected_fabric):
    arrivals = await promote_in_mid_burst(lab, connected_fabric, GUARD_US)
    assert len(arrivals) == BURSTS * PACKETS
    assert overtaken(arrivals) == 0
    # The promotion did come: the last burst, sent at the high level, waited for nobody.
    delays = sorted(delay for number, delay in arrivals if number >= (BURSTS - 1) * PACKETS)
    queued = sorted(delay for number, delay in arrivals if number < PACKETS)
    assert delays[PACKETS // 2] < 0.25 * queued[PACKETS // 2]


async def test_without_the_guard_it_does(lab, connected_fabric):
    arrivals = await promote_in_mid_burst(lab, connected_fabric, 0)
    assert len(arrivals) == BURSTS * PACKETS
    assert overtaken(arrivals) > BURSTS
