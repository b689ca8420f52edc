"""Byte strings of P4Runtime (spec, Bytestrings): shortest form out, any length in, range checked by value."""

from __future__ import annotations

from grpc import StatusCode

from softswitch.p4runtime.errors import P4Error, invalid

PORT_BITS = 32
"""Width of a port's number where no field of the program gives one (``watch_port``)."""


def encode(value: int) -> bytes:
    """Return the canonical form of an unsigned value: the shortest string, one zero byte for 0."""
    return value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")


def decode(data: bytes, width: int, what: str) -> int:
    """Read an unsigned value of ``width`` bits; leading zero bytes are no error.

    Raises INVALID_ARGUMENT naming ``what`` for an empty string or a value wider than ``width``: what the
    sections on matches, actions and packet metadata ask for (and bmv2 sends), not Bytestrings' OUT_OF_RANGE.
    """
    if not data:
        raise invalid(f"{what}: the value is empty; zero is one zero byte")
    value = int.from_bytes(data, "big")
    if value >> width:
        raise invalid(f"{what}: {value:#x} does not fit into {width} bits")
    return value


def encode_signed(value: int) -> bytes:
    """Return the canonical form of a signed value: the shortest two's complement string."""
    bits = value.bit_length() if value >= 0 else (value + 1).bit_length()
    return value.to_bytes(bits // 8 + 1, "big", signed=True)


def decode_signed(data: bytes, width: int, what: str) -> int:
    """Read a two's complement value of ``width`` bits. Raises INVALID_ARGUMENT naming ``what``."""
    if not data:
        raise invalid(f"{what}: the value is empty; zero is one zero byte")
    value = int.from_bytes(data, "big", signed=True)
    if not -(1 << (width - 1)) <= value < 1 << (width - 1):
        raise invalid(f"{what}: {value} does not fit into {width} signed bits")
    return value


def prefix_mask(length: int, width: int) -> int:
    """Return the mask whose highest ``length`` of ``width`` bits are ones."""
    return ((1 << length) - 1) << (width - length)


def cell_range(index: int | None, size: int, what: str) -> range:
    """Return the cells of an indexed extern that ``index`` means: all of them for None.

    Raises INVALID_ARGUMENT for a negative index and OUT_OF_RANGE for one past the end.
    """
    if index is None:
        return range(size)
    if index < 0:
        raise invalid(f"{what}: index {index} is negative")
    if index >= size:
        raise P4Error(StatusCode.OUT_OF_RANGE, f"{what}: index {index} is past the last, {size - 1}")
    return range(index, index + 1)
