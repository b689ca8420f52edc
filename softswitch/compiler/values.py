"""Code of a value with its range, and what storing it takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Val:
    """Python code of a value with what is known about it: ``low`` <= value <= ``high`` (None: unbounded)."""

    code: str
    low: int | None = None
    high: int | None = None
    truth: bool = False  # a Python bool

    @property
    def const(self) -> int | None:
        """The value, if it is known."""
        return self.low if self.low == self.high else None


def const(value: int) -> Val:
    """Return a known integer."""
    return Val(str(value) if value >= 0 else f"({value})", value, value)


def bits(code: str, width: int, *, signed: bool = False) -> Val:
    """Return a value of a type ``bit<width>`` or ``int<width>``."""
    return Val(code, -(1 << width - 1), (1 << width - 1) - 1) if signed else Val(code, 0, (1 << width) - 1)


def truncated(value: Val, width: int, *, signed: bool = False) -> str:
    """Code for a value as it is stored in ``width`` bits."""
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    if value.low is not None and value.high is not None and low <= value.low and value.high <= high:
        return f"(1 if {value.code} else 0)" if value.truth else value.code
    if value.const is not None:
        wrapped = value.const & ((1 << width) - 1)
        return str(wrapped - (1 << width) if signed and wrapped > high else wrapped)
    if signed:
        return f"(({value.code} + {-low} & {(1 << width) - 1}) - {-low})"
    return f"{value.code} & {high}"
