"""What inputs are made of: writes, bit fields, packets on ports."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable, Iterator

Write = tuple[str, list[object]]
Packet = tuple[int, bytes]


def insert(table: str, match: list[object], action: object, *arguments: int, priority: int = 0) -> Write:
    return "insert", [table, match, action, list(arguments), priority]


def default(table: str, action: str, *arguments: int) -> Write:
    return "set_default", [table, action, list(arguments)]


def numbered(seed: int) -> random.Random:
    return random.Random(seed)


def packed(form: str, *values: int) -> bytes:
    return struct.pack("!" + form, *values)


def fields(*pairs: tuple[int, int]) -> bytes:
    """Bit fields, as (width, value), back to back."""
    whole = width = 0
    for size, value in pairs:
        whole = whole << size | value & (1 << size) - 1
        width += size
    return whole.to_bytes(width // 8, "big")


def on_port(packets: Iterable[bytes], *ports: int, keep: int = 0) -> Iterator[Packet]:
    """Packets on ``ports`` in turn, every third once more, cut short.

    The first ``keep`` bytes are never cut: a program that reads the fields of a header that isn't valid finds
    in them, with bmv2, what other packets left there.
    """
    generator = numbered(99)
    ports = ports or (1,)
    for i, packet in enumerate(packets):
        yield ports[i % len(ports)], packet
        if i % 3 == 0:
            yield (
                ports[i % len(ports)],
                packet[: generator.randrange(min(keep, len(packet)), len(packet) + 1)],
            )
