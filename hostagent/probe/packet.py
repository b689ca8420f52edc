"""The bytes of a path probe (INT 2.1, INT-MD over TCP or UDP).

Ethernet, IPv4 or IPv6 with the DSCP that marks INT, the flow's own TCP (20 bytes, no flags) or UDP header,
the INT shim, the INT-MD header with an empty stack. The 5-tuple is the flow's, so that ECMP sends the probe
where it sends the flow; the D bit has the sink discard it.

A TCP segment without any flag is one that every TCP ignores: should a probe ever reach a host, it cannot
disturb the connection whose name it carries.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from hostagent.flows.connection import TCP, UDP, FiveTuple

WORDS = {0: 1, 1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 6: 2, 7: 1, 8: 1, 15: 1}
"""Instruction bit (0 = most significant) -> 4-byte words that a hop adds (INT 2.1, section 4.7)."""

SHIM_INT_MD = 1
VERSION = 2
MAX_WORDS_PER_HOP = 31

_ETHERTYPE = {4: 0x0800, 16: 0x86DD}
_HOP_LIMIT = 64
_DONT_FRAGMENT = 0x4000
_DISCARD = 1 << 27  # the D bit of the INT-MD header's first word


@dataclass(frozen=True, slots=True)
class ProbeSpec:
    """What a controller asks a probe to be; see ProbeRequest in the agents' protocol."""

    flow: FiveTuple
    dscp: int
    instructions: int
    max_hops: int
    domain: int = 0


def words_per_hop(instructions: int) -> int:
    """Return HopML, the 4-byte words that each hop adds for the 16-bit bitmap ``instructions``.

    Raises ValueError for a bitmap that is empty or has a bit INT 2.1 does not define: its length is unknown.
    """
    bits = [bit for bit in range(16) if instructions & 0x8000 >> bit]
    unknown = [bit for bit in bits if bit not in WORDS]
    if unknown or not bits or instructions >> 16:
        raise ValueError(
            f"instruction bitmap {instructions:#06x} is empty or has bits INT 2.1 does not define"
        )
    return sum(WORDS[bit] for bit in bits)


def check(spec: ProbeSpec) -> None:
    """Raise ValueError, saying which and why, for a field that cannot be put into a probe."""
    flow = spec.flow
    if len(flow.source) not in _ETHERTYPE or len(flow.source) != len(flow.destination):
        raise ValueError(
            f"addresses of {len(flow.source)} and {len(flow.destination)} bytes, not 4 or 16 each"
        )
    if flow.protocol not in (TCP, UDP):
        raise ValueError(f"protocol {flow.protocol} is neither TCP (6) nor UDP (17)")
    for name, value, highest in (
        ("source port", flow.source_port, 0xFFFF),
        ("destination port", flow.destination_port, 0xFFFF),
        ("DSCP", spec.dscp, 63),
        ("remaining hop count", spec.max_hops, 255),
        ("INT domain", spec.domain, 0xFFFF),
    ):
        if not 0 <= value <= highest:
            raise ValueError(f"{name} {value} is not within 0 to {highest}")
    if spec.max_hops == 0:
        raise ValueError("remaining hop count 0 lets no hop say anything")
    words_per_hop(spec.instructions)


def build(spec: ProbeSpec, source_mac: bytes, destination_mac: bytes) -> bytes:
    """Return the whole Ethernet frame, padding left to the interface. Raises ValueError as `check`."""
    check(spec)
    source, destination = spec.flow.source, spec.flow.destination
    body = _transport(spec.flow, _int_headers(spec))
    if len(source) == 4:
        header = _ipv4(spec, len(body))
    else:
        header = struct.pack(
            "!IHBB", 6 << 28 | spec.dscp << 22, len(body), spec.flow.protocol, _HOP_LIMIT
        ) + (source + destination)
    return destination_mac + source_mac + _ETHERTYPE[len(source)].to_bytes(2, "big") + header + body


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071) of ``data``."""
    padded = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def _int_headers(spec: ProbeSpec) -> bytes:
    # NPT 0: the two bytes that follow have the original DSCP on top. A probe has no original: 0, best effort.
    # The length is that of the INT-MD header in words: since INT 2.0 the shim itself is not counted.
    shim = struct.pack("!BBH", SHIM_INT_MD << 4, 3, 0)
    first = VERSION << 28 | _DISCARD | words_per_hop(spec.instructions) << 8 | spec.max_hops
    return shim + struct.pack("!IHHI", first, spec.instructions, spec.domain, 0)


def _transport(flow: FiveTuple, payload: bytes) -> bytes:
    ports = struct.pack("!HH", flow.source_port, flow.destination_port)
    if flow.protocol == UDP:
        before, after = ports + struct.pack("!H", 8 + len(payload)), b""
    else:
        # Sequence and acknowledgement 0, data offset 5 words, no flags, window 0; urgent pointer 0.
        before, after = ports + struct.pack("!IIBBH", 0, 0, 5 << 4, 0, 0), bytes(2)
    length = len(before) + 2 + len(after) + len(payload)
    # IPv4's pseudo header has 8 and 16 bits for protocol and length, IPv6's 32 each: to the sum it is the
    # same.
    pseudo = flow.source + flow.destination + struct.pack("!II", length, flow.protocol)
    value = checksum(pseudo + before + bytes(2) + after + payload)
    # To UDP a checksum of 0 means none; its other form is the same number in one's complement (RFC 768).
    return before + (value or 0xFFFF).to_bytes(2, "big") + after + payload


def _ipv4(spec: ProbeSpec, length: int) -> bytes:
    flow = spec.flow
    start = struct.pack(
        "!BBHHHBB", 0x45, spec.dscp << 2, 20 + length, 0, _DONT_FRAGMENT, _HOP_LIMIT, flow.protocol
    )
    addresses = flow.source + flow.destination
    return start + checksum(start + addresses).to_bytes(2, "big") + addresses
