"""A flow at a high level, offered at 80 % of a port that a lower one saturates, loses no packet."""

import asyncio
import json
import subprocess
import sys
import time
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from controlplane.model import FiveTuple
from controlplane.southbound import Desired, FlowEntry, GroupLevel
from topo import scenario
from topo.lab import Lab
from topo.lossless import QUEUE_DEPTH

STREAM = str(Path(__file__).with_name("stream.py"))
FABRIC = scenario.find("pair").fabric
RATE_MBPS = 100  # of the port that both flows leave by
SIZE = 8042  # bytes of a frame of stream.py
SECONDS = 3.0
HIGH, LOW = "7000", "1000"
"""UDP ports of the two flows."""


async def rank(lab, connected_fabric):
    """The flow from h1 to h2 goes to a high level, that from h3 to h4 to a low one."""
    async with connected_fabric(lab) as (fabric, setups):
        address = {name: IPv4Address(host.ipv4) for name, host in lab.fabric.hosts.items()}
        flows = {
            FiveTuple(address[a], address[b], 17, int(port), int(port)): FlowEntry(number, number)
            for number, (a, b, port) in enumerate([("h1", "h2", HIGH), ("h3", "h4", LOW)], start=1)
        }
        groups = {1: GroupLevel(5), 2: GroupLevel(1)}
        await fabric.apply({name: Desired(setup, flows, groups) for name, setup in setups.items()})


def offer(lab):
    """Let both flows compete; return what each sent, and what of it arrived."""
    address = {name: str(host.ipv4) for name, host in lab.fabric.hosts.items()}

    def start(host, *arguments):
        return lab.execute(host, [sys.executable, STREAM, *arguments], stdout=subprocess.PIPE)

    sinks = [start("h2", "count", HIGH), start("h4", "count", LOW)]
    for sink in sinks:
        assert sink.stdout.readline() == b"ready\n"
    begin = str(time.time() + 3)  # together, however long Python takes to start on a busy machine
    sources = [
        start(host, "offer", address[to], port, str(share * RATE_MBPS), str(SECONDS), begin)
        for host, to, port, share in [("h1", "h2", HIGH, 0.8), ("h3", "h4", LOW, 1.2)]
    ]
    answers = [json.loads(process.communicate(timeout=30)[0]) for process in sources + sinks]
    return answers[:2], answers[2:]


@pytest.fixture
def lab(kind, directory):
    with Lab(FABRIC.build(), kind, directory) as running:
        yield running


async def test_high_at_80_percent_of_a_saturated_port_loses_nothing(lab, connected_fabric):
    await rank(lab, connected_fabric)
    port = RATE_MBPS * 1e6 * SECONDS / (8 * SIZE)  # packets
    for _ in range(3):
        (high, low), (high_arrived, low_arrived) = await asyncio.to_thread(offer, lab)
        assert high_arrived == high
        if high > 0.75 * port and high + low > 1.5 * port:
            break  # else the machine had no time for the sources, and nothing is proved
    else:
        pytest.fail(f"the sources could not saturate the port: {high} and {low} of {port}")
    # The low flow gets what is left, and what still waited when the sources stopped.
    left = port - high
    assert 0.8 * left < low_arrived < 1.2 * left + QUEUE_DEPTH
    assert low_arrived < low
