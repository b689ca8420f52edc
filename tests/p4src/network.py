"""What the tests say to a switch: routes, flows, levels, probes."""

from __future__ import annotations

import itertools
import select
import struct
import time
from typing import Any

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from tests.p4src.lab import Lab
from tests.p4src.runtime import Runtime

ROUTER = "02:00:00:00:00:fe"
"""The MAC address that hosts send to."""
HOSTS = {1: "10.0.1.1", 2: "10.0.2.1", 3: "10.0.3.1", 4: "10.0.4.1"}
"""What is behind each port: a host for 1 and 2, another switch for 3 and 4."""
HOSTS6 = {port: f"fd00::{port}:1" for port in HOSTS}
PROTOCOLS = {TCP: 6, UDP: 17}
DSCP_BASE = 40
"""``Network.levels`` has level k leave with DSCP 40 + k, so that a test can see it."""
CONTROL = 7
INT_DSCP = 0x17


def mac(port: int) -> str:
    """Return the address of what is behind ``port``."""
    return f"02:00:00:00:00:{port:02x}"


class Network:
    """Routes to every port, ports 3 and 4 fabric-facing, unless a test asks for less."""

    def __init__(self, lab: Lab, runtime: Runtime) -> None:
        self.lab = lab
        self.runtime = runtime
        self._slots = itertools.count(1)  # registers outlive a test: every flow has a slot of its own
        self._groups = itertools.count(1)

    def route(self) -> None:
        for port, address in HOSTS.items():
            self.runtime.insert("ipv4_lpm", {"dst": f"{address}/32"}, "set_nhop", port=port, dmac=mac(port))
            self.runtime.insert(
                "ipv6_lpm", {"dst": f"{HOSTS6[port]}/128"}, "set_nhop", port=port, dmac=mac(port)
            )
        for port in (3, 4):
            self.runtime.insert("edge_port", {"ingress_port": port}, "fabric_facing")

    def levels(self) -> None:
        """Level k: queue k, DSCP 40 + k; unknown flows on level 1, control on 7."""
        for level in range(8):
            self.runtime.insert(
                "level_queue", {"level": level}, "set_queue", queue=level, dscp=DSCP_BASE + level, rewrite=1
            )
        self.runtime.default("default_level", "set_default_level", level=1, control_level=CONTROL)

    def sinks(self, node_id: int) -> None:
        for port in (3, 4):
            self.runtime.insert("int_sink", {"egress_port": port}, "relay")
        self.runtime.default("int_node", "set_int_node", node_id=node_id)

    def flow(self, frame: Packet, group: int | None = None) -> tuple[int, int]:
        """Make the flow of ``frame`` known, in a slot never used before; return (group, slot)."""
        slot = next(self._slots)
        group = self.group() if group is None else group
        table, match = flow_key(frame)
        self.runtime.insert(table, match, "set_group", group=group, slot=slot)
        return group, slot

    def group(self) -> int:
        return next(self._groups)

    def level(self, group: int, level: int, bank: int = 0, guard_us: int = 0, slack_us: int = 0) -> None:
        """Write a group's level for the first time in this test."""
        self._level(self.runtime.insert, group, level, bank, guard_us, slack_us)

    def relevel(self, group: int, level: int, bank: int = 0, guard_us: int = 0, slack_us: int = 0) -> None:
        """Write it again."""
        self._level(self.runtime.modify, group, level, bank, guard_us, slack_us)

    @staticmethod
    def _level(write: Any, group: int, level: int, bank: int, guard_us: int, slack_us: int) -> None:
        match = {"bank": bank, "group": group}
        write("group_level", match, "set_level", level=level, guard_us=guard_us, slack_us=slack_us)

    def leaves(
        self, frame: Packet | bytes, ingress: int = 1, timeout_s: float = 3.0
    ) -> tuple[int, Packet] | None:
        """Send ``frame`` into a port; return the port it leaves by and it as it leaves, or None."""
        self.lab.wires[ingress].send(bytes(frame))
        deadline = time.monotonic() + timeout_s
        while (left := deadline - time.monotonic()) > 0:
            ready, _, _ = select.select(list(self.lab.wires.values()), [], [], left)
            for port, wire in self.lab.wires.items():
                if wire in ready and (got := wire.receive(0.01)) is not None:
                    return port, Ether(got)
        return None

    def through(self, frame: Packet | bytes, ingress: int, egress: int) -> Packet:
        """Send ``frame`` into one port and return what leaves by another; fail when nothing does."""
        left = self.leaves(frame, ingress)
        assert left is not None, "nothing left the switch"
        port, out = left
        assert port == egress, f"{out!r} left on port {port}"
        return out

    def vanishes(self, frame: Packet | bytes, ingress: int = 1, quiet_s: float = 0.15) -> None:
        """Send ``frame`` into a port and check that nothing leaves anywhere, to the controller neither."""
        assert self.leaves(frame, ingress, quiet_s) is None
        assert self.runtime.packet_in(0) is None

    def level_seen(self, frame: Packet, ingress: int = 1, egress: int = 2) -> int:
        """Return the level on which ``frame`` leaves."""
        return dscp(self.through(frame, ingress, egress)) - DSCP_BASE


def flow_key(frame: Packet) -> tuple[str, dict[str, Any]]:
    """Return the 5-tuple table and key for a frame."""
    l4 = frame[TCP] if TCP in frame else frame[UDP]
    match = {"protocol": PROTOCOLS[type(l4)], "sport": l4.sport, "dport": l4.dport}
    if IP in frame:
        return "flow_group_v4", {"src": frame[IP].src, "dst": frame[IP].dst, **match}
    return "flow_group_v6", {"src": frame[IPv6].src, "dst": frame[IPv6].dst, **match}


def ip(source: int = 1, destination: int = 2, *, dscp: int = 0, v6: bool = False, ttl: int = 64) -> Packet:
    """Return Ethernet and IP headers from the host behind one port to the one behind another."""
    ether = Ether(src=mac(source), dst=ROUTER)
    if v6:
        return ether / IPv6(src=HOSTS6[source], dst=HOSTS6[destination], tc=dscp << 2, hlim=ttl)
    return ether / IP(src=HOSTS[source], dst=HOSTS[destination], tos=dscp << 2, ttl=ttl, id=7)


def data(sport: int = 5001, *, v6: bool = False, udp: bool = False, **options: Any) -> Packet:
    """Return a segment with payload."""
    l4 = UDP(sport=sport, dport=6001) if udp else TCP(sport=sport, dport=6001, flags="A")
    return ip(v6=v6, **options) / l4 / (b"x" * 100)


def ack(sport: int = 5001, *, flags: str = "A", **options: Any) -> Packet:
    """Return a segment of the same flow without."""
    return ip(**options) / TCP(sport=sport, dport=6001, flags=flags)


def dscp(frame: Packet) -> int:
    return int(frame[IP].tos if IP in frame else frame[IPv6].tc) >> 2


def int_bytes(
    instructions: int,
    *,
    hops: int = 8,
    hop_ml: int | None = None,
    stack: bytes = b"",
    d: int = 1,
    e: int = 0,
    m: int = 0,
    kind: int = 1,
    version: int = 2,
    ds_instruction: int = 0,
) -> bytes:
    """Return an INT shim and INT-MD header (INT 2.1), well-formed unless asked otherwise."""
    if hop_ml is None:
        hop_ml = (instructions >> 7).bit_count() + (instructions >> 9 & 7).bit_count()
    return (
        struct.pack("!BBH", kind << 4, 3 + len(stack) // 4, 0)
        + struct.pack("!HBB", version << 12 | d << 11 | e << 10 | m << 9, hop_ml, hops)
        + struct.pack("!HHHH", instructions, 0, ds_instruction, 0)
        + stack
    )


def probe(
    instructions: int = 0xC000, *, udp: bool = False, dport: int = 6001, v6: bool = False, **options: Any
) -> Packet:
    """Return a fresh probe from host 1 to host 2 (or ``destination``)."""
    destination = options.pop("destination", 2)
    source = options.pop("source", 1)
    ttl = options.pop("ttl", 64)
    l4 = UDP(sport=5001, dport=dport) if udp else TCP(sport=5001, dport=dport, flags="A")
    return ip(source, destination, dscp=INT_DSCP, v6=v6, ttl=ttl) / l4 / int_bytes(instructions, **options)
