"""Counters, meters and registers: state that both the packet path and the control plane touch.

Counters and registers are plain lists the generated code indexes directly; a control-plane write is one list
store.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from softswitch.errors import Code, TableError

GREEN, YELLOW, RED = 0, 1, 2


def _check(kind: str, name: str, index: int, size: int) -> None:
    if not 0 <= index < size:
        raise TableError(Code.OUT_OF_RANGE, f"{kind} {name} has no index {index} (size {size})")


class Counter:
    """An indirect counter array.

    As in bmv2 it always counts packets and bytes; P4Info says which are of interest.

    Bytes are those of the packet as it came in.
    """

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self.packets = [0] * size
        self.bytes = [0] * size

    def read(self, index: int) -> tuple[int, int]:
        """(packets, bytes) of one cell. Raises ``TableError`` OUT_OF_RANGE."""
        _check("counter", self.name, index, self.size)
        return self.packets[index], self.bytes[index]

    def write(self, index: int, packets: int, nbytes: int) -> None:
        """Set one cell. Raises ``TableError`` OUT_OF_RANGE."""
        _check("counter", self.name, index, self.size)
        self.packets[index], self.bytes[index] = packets, nbytes


class Register:
    """A register array of ``width``-bit unsigned cells (signed where the program says so), initially 0."""

    def __init__(self, name: str, size: int, width: int) -> None:
        self.name = name
        self.size = size
        self.width = width
        self.cells = [0] * size

    def read(self, index: int) -> int:
        """Return the value of one cell. Raises ``TableError`` OUT_OF_RANGE."""
        _check("register", self.name, index, self.size)
        return self.cells[index]

    def write(self, index: int, value: int) -> None:
        """Set one cell, keeping the low ``width`` bits. Raises ``TableError`` OUT_OF_RANGE."""
        _check("register", self.name, index, self.size)
        self.cells[index] = value & ((1 << self.width) - 1)


@dataclass(slots=True, frozen=True)
class MeterConfig:
    """P4Runtime's MeterConfig: rates per second, bursts in the meter's unit (bytes or packets)."""

    cir: int
    cburst: int
    pir: int
    pburst: int


class MeterCell:
    """One two-rate three-colour marker, as bmv2 computes it (``src/bm_sim/meters.cpp``); colour-blind.

    Two token buckets filled from a common origin. The peak bucket is asked first: short of it the packet is
    RED and the committed bucket is neither filled nor used; then short of the committed one it is YELLOW.
    Unconfigured: GREEN.
    """

    __slots__ = ("_buckets", "config")

    def __init__(self) -> None:
        self.config: MeterConfig | None = None
        self._buckets: tuple[_Bucket, ...] = ()

    def configure(self, config: MeterConfig | None) -> None:
        """Set the rates, buckets full; None goes back to the default (everything GREEN).

        Raises ``TableError`` INVALID_ARGUMENT when the committed rate exceeds the peak rate.
        """
        if config is not None and config.cir > config.pir:
            raise TableError(Code.INVALID_ARGUMENT, f"meter cir {config.cir} exceeds its pir {config.pir}")
        buckets: tuple[_Bucket, ...] = ()
        if config is not None:
            buckets = _Bucket(config.pir, config.pburst, RED), _Bucket(config.cir, config.cburst, YELLOW)
        self.config, self._buckets = config, buckets

    def execute(self, amount: int, now_us: int) -> int:
        """Return the colour of a packet that takes ``amount`` (its bytes.

        Or 1) at the switch's clock ``now_us``.
        """
        for bucket in self._buckets:
            filled = bucket.rate * now_us // 1_000_000
            if bucket.last is None:
                bucket.last = filled
            bucket.tokens = min(bucket.tokens + filled - bucket.last, bucket.burst)
            bucket.last = filled
            if bucket.tokens < amount:
                return bucket.color
            bucket.tokens -= amount
        return GREEN


class _Bucket:
    __slots__ = ("burst", "color", "last", "rate", "tokens")

    def __init__(self, rate: int, burst: int, color: int) -> None:
        self.rate, self.burst, self.color = rate, burst, color
        self.tokens = burst
        self.last: int | None = None


class Meter:
    """An indirect meter array; ``unit`` is what a packet takes from its buckets."""

    def __init__(self, name: str, size: int, unit: Literal["bytes", "packets"]) -> None:
        self.name = name
        self.size = size
        self.unit = unit
        self.cells = [MeterCell() for _ in range(size)]

    def cell(self, index: int) -> MeterCell:
        """One cell, to read or configure. Raises ``TableError`` OUT_OF_RANGE."""
        _check("meter", self.name, index, self.size)
        return self.cells[index]
