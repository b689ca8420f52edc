"""A flow at a high level, offered at 80 % of a port that a lower one saturates, loses no packet."""

import socket
import threading
import time
from collections import Counter

import finsy as fy
import pytest

import p4src
from softswitch.sender import Sender
from tests.softswitch.conftest import namespace, switch, veth  # noqa: F401  (fixtures)

RATE = 50_000_000
SIZE = 1500
SECONDS = 3.0
HIGH, LOW = 7000, 1000
"""Source ports of the two flows."""
DEPTH = 2000
"""Packets: more than the high flow sends while a busy machine keeps the switch waiting for half a second."""


class Source(threading.Thread):
    """Sends one UDP flow, 10.0.0.1 to 10.0.0.3, at a share of the port's rate."""

    def __init__(self, interface, sport, share):
        super().__init__()
        self.sent = 0
        self._interval = 8 * SIZE / (share * RATE)
        self._frame = udp(sport)
        self.refused = Counter()
        self._sender = Sender(interface, 0, SIZE, 1000, self.refused, self.refused.update)

    def run(self):
        now = due = time.monotonic()
        end = now + SECONDS
        while now < end:
            due = max(due, now - 20 * self._interval)  # a pause of the machine makes no burst of ours
            while due <= now:
                self._sender.put(self._frame)
                self.sent, due = self.sent + 1, due + self._interval
            self._sender.flush()
            time.sleep(0.0005)
            now = time.monotonic()
        self._sender.close()


def udp(sport):
    ip = bytes.fromhex("4500 05ce 0000 4000 4011 0000 0a000001 0a000003".replace(" ", ""))
    total = sum(int.from_bytes(ip[i : i + 2], "big") for i in range(0, 20, 2))
    total = (total & 0xFFFF) + (total >> 16)
    ip = ip[:10] + (0xFFFF - total).to_bytes(2, "big") + ip[12:]
    header = sport.to_bytes(2, "big") + (2000).to_bytes(2, "big") + (SIZE - 34).to_bytes(2, "big") + b"\0\0"
    return bytes.fromhex("0200000000010200000000fe0800") + ip + header + bytes(SIZE - 42)


@pytest.fixture
def fabric(veth, switch):  # noqa: F811
    """A switch with sources on ports 1 and 2 and a sink on port 3, which is limited."""
    for number in (1, 2, 3):
        veth(f"s{number}", f"h{number}")
    ports = [argument for number in (1, 2, 3) for argument in ("-i", f"{number}@s{number}")]
    limit = ["--port-rate", f"3@{RATE}", "--queue-depth", str(DEPTH)]
    return switch(*ports, *limit, "--device-id", "1", "--no-p4")


async def configure(address, high_queue):
    program = p4src.program("v1model")
    options = fy.SwitchOptions(p4info=program.p4info, p4blob=program.json, device_id=1)
    key = {"src": "10.0.0.1", "dst": "10.0.0.3", "protocol": 17, "sport": HIGH, "dport": 2000}
    async with fy.Switch("sw", address, options) as connection:
        await connection.write(
            [
                +fy.P4TableEntry(
                    "flow_group_v4",
                    match=fy.P4TableMatch(**key),
                    action=fy.P4TableAction("set_group", group=1, slot=1),
                ),
                +fy.P4TableEntry(
                    "group_level",
                    match=fy.P4TableMatch(bank=0, group=1),
                    action=fy.P4TableAction("set_level", level=5, guard_us=0, slack_us=0),
                ),
                +fy.P4TableEntry(
                    "level_queue",
                    match=fy.P4TableMatch(level=5),
                    action=fy.P4TableAction("set_queue", queue=high_queue, dscp=0, rewrite=0),
                ),
                +fy.P4TableEntry(
                    "ipv4_lpm",
                    match=fy.P4TableMatch(dst="10.0.0.3/32"),
                    action=fy.P4TableAction("set_nhop", port=3, dmac=0x020000000003),
                ),
            ]
        )


def offer():
    """Let both flows compete; return what each sent, and what of it arrived."""
    counted = Counter()
    listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    listener.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
    listener.bind(("h3", 0))
    high, low = Source("h1", HIGH, 0.8), Source("h2", LOW, 1.2)
    for source in (high, low):
        source.start()
    for source in (high, low):
        source.join()
        assert not source.refused
    listener.settimeout(1.0)
    try:
        while True:
            counted[int.from_bytes(listener.recv(40)[34:36], "big")] += 1
    except TimeoutError:
        listener.close()
    return {HIGH: high.sent, LOW: low.sent}, counted


async def test_high_at_80_percent_of_a_saturated_port_loses_nothing(fabric):
    await configure(fabric.address, high_queue=5)
    port = RATE * SECONDS / (8 * SIZE)  # packets
    for _ in range(3):
        sent, arrived = offer()
        assert arrived[HIGH] == sent[HIGH]
        if sent[HIGH] > 0.75 * port and sent[HIGH] + sent[LOW] > 1.5 * port:
            break  # else the machine had no time for the sources, and nothing is proved
    else:
        pytest.fail(f"the sources could not saturate the port: {sent} of {port}")
    # The low flow gets what is left, and what still waited when the sources stopped.
    left = port - sent[HIGH]
    assert 0.8 * left < arrived[LOW] < 1.2 * left + DEPTH
    assert arrived[LOW] < sent[LOW] - DEPTH
