"""Frames for the switch program: of every kind that it tells apart, sound and malformed."""

from __future__ import annotations

import random
import struct

HOST, ROUTER = bytes.fromhex("020000000101"), bytes.fromhex("02000000aaaa")
ROCE, INT_DSCP = 4791, 0x17
WITHOUT_CLOCK = 0xD3FF
"""INT instructions whose answers do not depend on a switch's clock; 0x2C00 are about the clock."""
FIRST_V4, FIRST_V6 = 0x0A000101, 0xFD00 << 112 | 1


def _mostly(g: random.Random, sound: int, *others: int) -> int:
    """``sound``, but one time in ten one of the others."""
    return g.choice(others) if g.randrange(10) == 0 else sound


def frame(g: random.Random, instructions: int = WITHOUT_CLOCK) -> bytes:
    """A random frame; INT probes in it ask for ``instructions`` at most."""
    body, kind = g.choice([_ipv4, _ipv4, _ipv4, _ipv6, _ipv6, _other])(g, instructions)
    tags = _mostly(g, 0, 1, 2, 3)
    middle = b"".join(struct.pack("!HH", g.choice([0x8100, 0x88A8]), g.randrange(65536)) for _ in range(tags))
    data = ROUTER + HOST + middle + struct.pack("!H", kind) + body
    if g.randrange(8) == 0:
        data = data[: g.randrange(1, len(data) + 1)]
    if g.randrange(8) == 0 and len(data) > 12:
        at = g.randrange(12, len(data))
        data = data[:at] + bytes([g.randrange(256)]) + data[at + 1 :]
    if g.randrange(8) == 0:
        data += g.randbytes(g.randrange(1, 30))  # padding behind the IP packet
    return data


def _other(g: random.Random, instructions: int) -> tuple[bytes, int]:
    del instructions
    return g.randbytes(g.randrange(50)), g.choice([0x0806, 0x88CC, 0x1234, 0x0800, 0x86DD])


def _ipv4(g: random.Random, instructions: int) -> tuple[bytes, int]:
    protocol, dscp, behind = _transport(g, instructions)
    words = _mostly(g, 5, 6, 10, 15, 15, 4, 0)
    options = g.randbytes(4 * max(0, words - 5)) if g.randrange(6) else b""
    length = 20 + len(options) + len(behind)
    length = _mostly(g, length, length + 7, 0, 65535)
    fragment = _mostly(g, 0x4000, 0, 0x2000, 0x2000 | 20, 20)
    to = g.choice([0x0A000201, 0x0A000301, 0x0A000401, _mostly(g, 0x0A000201, 0x0A000909, 0xE0000001)])
    ttl = _mostly(g, 64, 2, 1, 0)
    head = struct.pack(
        "!BBHHHBBHII",
        _mostly(g, 4, 5) << 4 | words,
        dscp << 2 | g.randrange(4),
        length,
        7,
        fragment,
        ttl,
        protocol,
        0,
        FIRST_V4,
        to,
    )
    total = sum(struct.unpack("!10H", head))
    checksum = 0xFFFF - (total % 0xFFFF or 0xFFFF)
    return head[:10] + struct.pack("!H", checksum) + head[12:] + options + behind, 0x0800


def _ipv6(g: random.Random, instructions: int) -> tuple[bytes, int]:
    protocol, dscp, behind = _transport(g, instructions)
    for _ in range(_mostly(g, 0, 1, 2)):  # hop by hop, routing, fragment, destination options
        size = g.choice([0, 0, 1, 40])
        behind = struct.pack("!BB", protocol, size) + g.randbytes(6 + 8 * min(size, 2)) + behind
        protocol = g.choice([0, 43, 44, 60])
    length = _mostly(g, len(behind), len(behind) + 3, 0, 65535)
    to = _mostly(g, 0xFD00 << 112 | g.choice([2, 3]), 0xFE80 << 112 | 2, 0xFF02 << 112 | 1)
    first = _mostly(g, 6, 7) << 28 | dscp << 22 | g.randrange(4) << 20
    head = struct.pack("!IHBB", first, length, protocol, _mostly(g, 64, 255, 1, 0))
    return head + FIRST_V6.to_bytes(16, "big") + to.to_bytes(16, "big") + behind, 0x86DD


def _transport(g: random.Random, instructions: int) -> tuple[int, int, bytes]:
    """A transport protocol, the DSCP that goes with it, and what is behind the IP header."""
    payload = g.randbytes(g.choice([0, 0, 1, 40, 100]))
    probe = g.randrange(3) == 0
    dscp = INT_DSCP if probe else g.choice([0, 8, 46, 63])
    if probe:
        payload = _probe(g, instructions) + payload[: g.choice([0, 0, 100])]
    match g.choice(["tcp", "tcp", "tcp", "udp", "udp", "udp", "icmp", "other"]):
        case "tcp":
            words = _mostly(g, 5, 8, 15, 3)
            flags = g.choice([0x10, 0x10, 0x18, 0x02, 0x04, 0x11])
            sport = g.randrange(5000, 5008)
            head = struct.pack("!HHIIBBHHH", sport, 80, 1, 2, words << 4, flags, 99, 0, 0)
            return 6, dscp, head + bytes(4 * max(0, words - 5)) + payload
        case "udp":
            port = g.choice([53, ROCE, ROCE, 6000])
            if port == ROCE and not probe:
                opcode = g.choice([0x04, 0x81, 0x11, 0x24])
                payload = struct.pack("!BBHII", opcode, 0, 0xFFFF, g.choice([17, 18, 99]), 1) + payload
            length = _mostly(g, 8 + len(payload), 8, 3, 65535)
            return 17, dscp, struct.pack("!HHHH", g.randrange(5000, 5008), port, length, 0) + payload
        case "icmp":
            return (
                g.choice([1, 58]),
                dscp,
                struct.pack("!BBHI", g.choice([8, 128, 134, 135, 136]), 0, 0, 1) + payload,
            )
    return g.choice([2, 47, 89, 132]), dscp, payload


def _probe(g: random.Random, allowed: int) -> bytes:
    """An INT shim and INT-MD header with a stack, mostly sound."""
    asked = g.choice([0xC000, 0xD000, 0x0200, 0xD380, 0xFF80, g.getrandbits(16)])
    instructions = asked & allowed
    words = (instructions >> 7).bit_count() + (instructions >> 9 & 7).bit_count()
    words = _mostly(g, words, words + 1, 0, 31)
    hops = _mostly(g, 0, 1, 3)
    length = _mostly(g, 3 + hops * words, 3, 2, 0, 250, 255)
    kind = _mostly(g, 1, 2, 3)
    version, flags = _mostly(g, 2, 1), _mostly(g, 4, 0, 6, 5)
    return (
        struct.pack("!BBH", kind << 4, length & 0xFF, 0)
        + struct.pack("!HBB", version << 12 | flags << 9, words & 31, _mostly(g, 8, 64, 1, 0))
        + struct.pack("!HHHH", instructions, 0, _mostly(g, 0, 1), 0)
        + g.randbytes(4 * hops * (words & 31))
    )
