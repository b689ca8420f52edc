"""INT-MD probes, as a sink hands them to the controller in a packet-in.

The packet is whole: Ethernet, up to two VLAN tags, IPv4 or IPv6, TCP or UDP, then the INT shim, the INT-MD
header and the stack of per-hop metadata, newest hop first. Source: INT 2.1 (p4lang/p4-applications),
sections 5.6 (shim) and 5.8 (INT-MD header). Whatever the bytes, ``parse`` returns a report or raises
``ReportError``; nothing in a report is taken on trust beyond its form.
"""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

from controlplane.model import FiveTuple

TCP, UDP = 6, 17
_VLAN_TYPES = (0x8100, 0x88A8)
_IPV4, _IPV6 = 0x0800, 0x86DD
_SHIM_BYTES, _HEADER_BYTES = 4, 12
_INT_MD, _INT_VERSION = 1, 2

_FIELDS: tuple[tuple[str, ...], ...] = (
    ("node_id",),
    ("ingress_port", "egress_port"),
    ("latency",),
    ("queue",),
    ("ingress_ns",),
    ("egress_ns",),
    ("ingress_interface", "egress_interface"),
    ("utilisation",),
    ("buffer",),
)
"""Instruction bit, most significant first -> the values a hop pushes for it."""

_WIDTH = {"ingress_port": 2, "egress_port": 2, "ingress_ns": 8, "egress_ns": 8}
"""Bytes of the values that are not four bytes wide."""


class Reason(enum.StrEnum):
    """What is wrong with a packet that should have been a probe."""

    TRUNCATED = "truncated"
    NOT_IP = "not IPv4 or IPv6"
    BAD_IP = "bad IP header"
    NOT_TRANSPORT = "not TCP or UDP"
    NOT_INT = "not marked as INT"
    BAD_SHIM = "bad INT shim"
    BAD_HEADER = "bad INT-MD header"
    BAD_STACK = "bad INT stack"


class ReportError(ValueError):
    """A packet-in that is not a well-formed INT probe: ``reason`` for the metrics, the text for a person."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


class Hop(NamedTuple):
    """What one switch said of itself. None: not asked for, or the switch cannot tell (all ones).

    Times are nanoseconds of that switch's own clock, ``latency`` in the units of the switch,
    ``occupancy`` in its units (bmv2: packets).
    """

    node_id: int | None = None
    ingress_port: int | None = None
    egress_port: int | None = None
    latency: int | None = None
    queue: int | None = None
    occupancy: int | None = None
    ingress_ns: int | None = None
    egress_ns: int | None = None


@dataclass(frozen=True, slots=True)
class IntReport:
    """A sunk probe: whose it is, and the hops it took in the order it took them."""

    flow: FiveTuple
    hops: tuple[Hop, ...]
    hops_exceeded: bool
    """Some switch found no room for its hop (E bit): the list is not the whole path."""
    mtu_exceeded: bool
    """Some switch left its hop out because the packet would have outgrown its MTU (M bit)."""
    remaining_hops: int
    domain: int


def parse(packet: bytes, dscp: int) -> IntReport:
    """Read the probe in ``packet``, an Ethernet frame whose IP header must carry ``dscp``.

    Raises ReportError for anything else, whatever the bytes.
    """
    flow, at = _flow(packet, dscp)
    need = at + _SHIM_BYTES + _HEADER_BYTES
    if len(packet) < need:
        raise ReportError(Reason.TRUNCATED, f"{len(packet)} bytes, INT needs {need}")
    kind, words = packet[at] >> 4, packet[at + 1]
    if kind != _INT_MD:
        raise ReportError(Reason.BAD_SHIM, f"type {kind}, INT-MD is {_INT_MD}")
    start = at + _SHIM_BYTES
    end = start + 4 * words
    if words * 4 < _HEADER_BYTES:
        raise ReportError(Reason.BAD_SHIM, f"length {words} words is less than the INT-MD header's 3")
    if len(packet) < end:
        raise ReportError(Reason.TRUNCATED, f"{len(packet)} bytes, the shim says {end}")
    flags, hop_words, remaining, instructions, domain, domain_bits, _ = struct.unpack_from(
        "!HBBHHHH", packet, start
    )
    if flags >> 12 != _INT_VERSION:
        raise ReportError(Reason.BAD_HEADER, f"version {flags >> 12}, INT 2.x is {_INT_VERSION}")
    hops = _hops(packet[start + _HEADER_BYTES : end], hop_words & 0x1F, instructions, bool(domain_bits))
    return IntReport(
        flow=flow,
        hops=hops,
        hops_exceeded=bool(flags & 0x0400),
        mtu_exceeded=bool(flags & 0x0200),
        remaining_hops=remaining,
        domain=domain,
    )


def _flow(packet: bytes, dscp: int) -> tuple[FiveTuple, int]:
    """Return the probe's 5-tuple and the offset behind its L4 header."""
    at = 12
    for _ in range(3):
        if len(packet) < at + 2:
            raise ReportError(Reason.TRUNCATED, f"{len(packet)} bytes end in the Ethernet header")
        ethertype = int.from_bytes(packet[at : at + 2])
        if ethertype not in _VLAN_TYPES:
            break
        at += 4
    at += 2
    source: IPv4Address | IPv6Address
    destination: IPv4Address | IPv6Address
    if ethertype == _IPV4:
        if len(packet) < at + 20:
            raise ReportError(Reason.TRUNCATED, f"{len(packet)} bytes end in the IPv4 header")
        size = 4 * (packet[at] & 0x0F)
        if packet[at] >> 4 != 4 or size < 20:
            raise ReportError(Reason.BAD_IP, f"version and length 0x{packet[at]:02x}")
        if int.from_bytes(packet[at + 6 : at + 8]) & 0x3FFF:
            raise ReportError(Reason.BAD_IP, "a fragment")
        traffic_class, protocol = packet[at + 1], packet[at + 9]
        source = IPv4Address(packet[at + 12 : at + 16])
        destination = IPv4Address(packet[at + 16 : at + 20])
    elif ethertype == _IPV6:
        if len(packet) < at + 40:
            raise ReportError(Reason.TRUNCATED, f"{len(packet)} bytes end in the IPv6 header")
        size = 40
        if packet[at] >> 4 != 6:
            raise ReportError(Reason.BAD_IP, f"version {packet[at] >> 4} behind the IPv6 ethertype")
        traffic_class = int.from_bytes(packet[at : at + 2]) >> 4 & 0xFF
        protocol = packet[at + 6]
        source = IPv6Address(packet[at + 8 : at + 24])
        destination = IPv6Address(packet[at + 24 : at + 40])
    else:
        raise ReportError(Reason.NOT_IP, f"ethertype 0x{ethertype:04x}")
    if traffic_class >> 2 != dscp:
        raise ReportError(Reason.NOT_INT, f"DSCP {traffic_class >> 2}, probes carry {dscp}")
    at += size
    if protocol not in (TCP, UDP):
        raise ReportError(Reason.NOT_TRANSPORT, f"protocol {protocol}")
    header = 20 if protocol == TCP else 8
    if len(packet) < at + header:
        raise ReportError(Reason.TRUNCATED, f"{len(packet)} bytes end in the L4 header")
    source_port, destination_port = struct.unpack_from("!HH", packet, at)
    return FiveTuple(source, destination, protocol, source_port, destination_port), at + header


def _hops(stack: bytes, hop_words: int, instructions: int, domain_specific: bool) -> tuple[Hop, ...]:
    """Read the stack, newest hop first, into path order."""
    layout: list[tuple[str, int]] = []
    for bit, names in enumerate(_FIELDS):
        if instructions & 0x8000 >> bit:
            layout += [(name, _WIDTH.get(name, 4)) for name in names]
    if instructions & 0x7E:
        raise ReportError(Reason.BAD_HEADER, f"instructions 0x{instructions:04x} ask for reserved values")
    known = sum(width for _, width in layout) // 4 + (instructions & 1)  # bit 15: checksum complement
    if hop_words < known or (hop_words > known and not domain_specific) or not hop_words:
        raise ReportError(
            Reason.BAD_HEADER, f"{hop_words} words a hop, instructions 0x{instructions:04x} make {known}"
        )
    size = 4 * hop_words
    if len(stack) % size:
        raise ReportError(Reason.BAD_STACK, f"{len(stack)} bytes are no multiple of {size} a hop")
    return tuple(_hop(stack[at : at + size], layout) for at in range(len(stack) - size, -1, -size))


def _hop(data: bytes, layout: list[tuple[str, int]]) -> Hop:
    values: dict[str, int | None] = {}
    at = 0
    for name, width in layout:
        value = int.from_bytes(data[at : at + width])
        at += width
        unknown = value == (1 << 8 * width) - 1
        if name == "queue":
            values["queue"] = None if unknown else value >> 24
            values["occupancy"] = None if unknown else value & 0xFFFFFF
        elif name in Hop._fields:
            values[name] = None if unknown else value
    return Hop(**values)
