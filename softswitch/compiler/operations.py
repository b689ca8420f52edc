"""Operators of the bmv2 expressions as Python.

With the range of each result so that needless masks are left out.

bmv2 computes with unbounded integers and truncates when it stores; p4c spells out every truncation. So do we,
except where the operand cannot exceed it.
"""

from __future__ import annotations

from softswitch.compiler.values import Val, bits, const, truncated

_COMPARE = {"==", "!=", "<", "<=", ">", ">=", "==b", "!=b"}
_WIDEST_SHIFT = 4096


def choice(condition: str, a: Val, b: Val) -> Val:
    """Code for ``condition ? a : b``."""
    low = None if a.low is None or b.low is None else min(a.low, b.low)
    high = None if a.high is None or b.high is None else max(a.high, b.high)
    return Val(f"({a.code} if {condition} else {b.code})", low, high, truth=a.truth and b.truth)


def unary(op: str, x: Val) -> Val | None:
    """Code for an operation on one operand; None if there is none of that name."""
    match op:
        case "not":
            return Val(f"(not {x.code})", 0, 1, truth=True)
        case "d2b":
            return x if x.truth else Val(f"({x.code} != 0)" if x.high != 1 else x.code, 0, 1, truth=True)
        case "b2d":
            return x
        case "~":
            if x.const is not None:
                return const(~x.const)
            return Val(f"(~{x.code})", None if x.high is None else ~x.high, None if x.low is None else ~x.low)
        case "-":
            return Val(f"(-{x.code})", None if x.high is None else -x.high, None if x.low is None else -x.low)
        case "+":
            return x
    return None


def binary(op: str, a: Val, b: Val) -> Val | None:
    """Code for an operation on two operands; None if there is none of that name."""
    if op in ("and", "or"):
        return Val(f"({a.code} {op} {b.code})", 0, 1, truth=True)
    if op in _COMPARE:
        return Val(f"({a.code} {op.rstrip('b')} {b.code})", 0, 1, truth=True)
    natural = a.low is not None and a.low >= 0 and b.low is not None and b.low >= 0
    top = None
    if natural and a.high is not None and b.high is not None:
        top = (1 << max(a.high.bit_length(), b.high.bit_length())) - 1
    match op:
        case "&":
            return _and(a, b)
        case "|" | "^":
            return Val(f"({a.code} {op} {b.code})", 0 if natural else None, top)
        case "+":
            return Val(f"({a.code} + {b.code})", _sum(a.low, b.low), _sum(a.high, b.high))
        case "-":
            low = None if a.low is None or b.high is None else a.low - b.high
            high = None if a.high is None or b.low is None else a.high - b.low
            return Val(f"({a.code} - {b.code})", low, high)
        case "*":
            high = a.high * b.high if natural and a.high is not None and b.high is not None else None
            return Val(f"({a.code} * {b.code})", 0 if natural else None, high)
        case "/" | "%":
            python = "//" if op == "/" else "%"
            safe = b.low is not None and b.low > 0
            code = f"({a.code} {python} {b.code})"
            high = a.high if op == "/" else (b.high - 1 if b.high else None)
            return Val(code if safe else f"({code} if {b.code} else 0)", 0 if natural else None, high)
        case "<<" | ">>":
            return _shift(op, a, b)
        case "two_comp_mod" if b.const is not None:
            return bits(truncated(a, b.const, signed=True), b.const, signed=True)
        case "usat_cast" | "sat_cast" if b.const is not None:
            limits = bits("", b.const, signed=op == "sat_cast")
            return _clamped(a, limits)
    return None


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _and(a: Val, b: Val) -> Val:
    if a.const is not None:
        a, b = b, a
    mask = b.const
    if mask is not None and mask >= 0:
        if a.const is not None:
            return const(a.const & mask)
        if a.low is not None and a.low >= 0 and a.high is not None:
            full = (1 << a.high.bit_length()) - 1
            if mask & full == full:
                return a
            return Val(f"({a.code} & {mask})", 0, min(mask, a.high))
        return Val(f"({a.code} & {mask})", 0, mask)
    highs = [x.high for x in (a, b) if x.low is not None and x.low >= 0 and x.high is not None]
    return Val(f"({a.code} & {b.code})", 0 if highs else None, min(highs) if highs else None)


def _shift(op: str, a: Val, b: Val) -> Val:
    code = f"({a.code} {op} {b.code})"
    if (
        b.high is None or b.high > _WIDEST_SHIFT
    ):  # a huge shift gives 0 in bmv2; Python would build the number
        code = f"({a.code} {op} {b.code} if {b.code} < {_WIDEST_SHIFT} else 0)"
    low = 0 if a.low is not None and a.low >= 0 else None
    if b.const == 0:
        return a
    if op == ">>":
        return Val(code, low, None if a.high is None else a.high >> (b.low or 0))
    high = None
    if a.high is not None and b.high is not None and b.high <= _WIDEST_SHIFT and a.high >= 0:
        high = a.high << b.high
    return Val(code, low, high)


def _clamped(a: Val, limits: Val) -> Val:
    assert limits.low is not None
    code = a.code
    if a.high is None or limits.high is None or a.high > limits.high:
        code = f"min({code}, {limits.high})"
    if a.low is None or a.low < limits.low:
        code = f"max({code}, {limits.low})"
    return Val(code, limits.low, limits.high)
