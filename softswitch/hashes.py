"""The hash and checksum algorithms of v1model.

With the values bmv2 computes (``src/bm_sim/calculations.cpp``).
"""

from __future__ import annotations

import zlib
from binascii import crc_hqx
from collections.abc import Callable, Iterable

_REMEMBERED = 65536
_LONGEST_REMEMBERED = 64


def gather(parts: Iterable[tuple[bool, int, int]]) -> bytes:
    """Bit fields back to back, those marked False left out, the last byte padded with zeros at its end.

    Each part is (included, width in bits, value).
    """
    whole = width = 0
    for included, bits, value in parts:
        if included:
            whole = whole << bits | value
            width += bits
    return (whole << -width % 8).to_bytes((width + 7) // 8, "big")


def csum16(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071): the complement of the ones' complement sum of 16-bit words."""
    total = int.from_bytes(data, "big") << (8 if len(data) % 2 else 0)
    return 65535 - (total % 65535 or (65535 if total else 0))


def _reflected(value: int, width: int) -> int:
    return int(f"{value:0{width}b}"[::-1], 2)


def crc(width: int, polynomial: int, initial: int, final: int, *, reflected: bool) -> Callable[[bytes], int]:
    """Return a table-driven CRC, both data and remainder reflected or neither.

    Remembers recent inputs (flows repeat).
    """
    table: list[int] = []
    top, mask = 1 << width - 1, (1 << width) - 1
    backwards = _reflected(polynomial, width)
    for byte in range(256):
        rest = byte if reflected else byte << width - 8
        for _ in range(8):
            if reflected:
                rest = rest >> 1 ^ (backwards if rest & 1 else 0)
            else:
                rest = (rest << 1 ^ (polynomial if rest & top else 0)) & mask
        table.append(rest)
    start = _reflected(initial, width) if reflected else initial
    known: dict[bytes, int] = {}

    def compute(data: bytes) -> int:
        found = known.get(data)
        if found is not None:
            return found
        rest = start
        if reflected:
            for byte in data:
                rest = rest >> 8 ^ table[(rest ^ byte) & 255]
        else:
            for byte in data:
                rest = (rest << 8 & mask) ^ table[rest >> width - 8 ^ byte]
        if len(data) <= _LONGEST_REMEMBERED:
            if len(known) >= _REMEMBERED:
                known.clear()
            known[data] = rest ^ final
        return rest ^ final

    return compute


def crc_ccitt(data: bytes) -> int:
    """CRC-CCITT with initial value 0xFFFF."""
    return crc_hqx(data, 0xFFFF)


def xor16(data: bytes) -> int:
    """Return the exclusive or of the 16-bit words, the last one padded with zeros."""
    result = 0
    if len(data) % 2:
        data = bytes(data) + b"\0"
    for i in range(0, len(data), 2):
        result ^= data[i] << 8 | data[i + 1]
    return result


def identity(data: bytes) -> int:
    """Return the first 8 bytes as a number."""
    return int.from_bytes(data[:8], "big")


ALGORITHMS: dict[str, tuple[Callable[[bytes], int], int]] = {
    "crc16": (crc(16, 0x8005, 0, 0, reflected=True), 16),
    "crc16_custom": (crc(16, 0x8005, 0, 0, reflected=True), 16),
    "crc32": (zlib.crc32, 32),
    "crc32_custom": (zlib.crc32, 32),
    "crcCCITT": (crc_ccitt, 16),
    "csum16": (csum16, 16),
    "cksum16": (csum16, 16),
    "xor16": (xor16, 16),
    "identity": (identity, 64),
}
"""Name -> (function, bits of its result).

The custom CRCs have bmv2's default parameters; it sets others by Thrift.
"""
