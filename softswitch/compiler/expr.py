"""Expressions and operands of the bmv2 JSON as typed trees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""What ``json.loads`` gives."""


@dataclass(slots=True, frozen=True)
class Const:
    """An integer constant, of any sign and size."""

    value: int
    width: int = 0  # bits, where the JSON says (calculation inputs); else 0


@dataclass(slots=True, frozen=True)
class Truth:
    """A boolean constant."""

    value: bool


@dataclass(slots=True, frozen=True)
class Field:
    """A field of a header or metadata instance."""

    header: str
    name: str


@dataclass(slots=True, frozen=True)
class Valid:
    """A header's validity, as a 1-bit value."""

    header: Expr


@dataclass(slots=True, frozen=True)
class Local:
    """An action parameter, by index."""

    index: int


@dataclass(slots=True, frozen=True)
class HeaderRef:
    """A whole header."""

    name: str


@dataclass(slots=True, frozen=True)
class StackRef:
    """A whole header stack."""

    name: str


@dataclass(slots=True, frozen=True)
class UnionRef:
    """A whole header union."""

    name: str


@dataclass(slots=True, frozen=True)
class Last:
    """A field of the last element that was extracted to (or pushed on) a stack."""

    stack: str
    field: str


@dataclass(slots=True, frozen=True)
class Element:
    """A stack's element at a computed index."""

    stack: str
    index: Expr


@dataclass(slots=True, frozen=True)
class Access:
    """The field number ``field`` of a computed header."""

    header: Expr
    field: int


@dataclass(slots=True, frozen=True)
class Lookahead:
    """Packet bits beyond the parser's position: ``offset`` and ``width`` in bits."""

    offset: int
    width: int


@dataclass(slots=True, frozen=True)
class Op:
    """An operation; ``cond`` only for ``?``."""

    op: str
    left: Expr | None
    right: Expr | None
    cond: Expr | None = None


@dataclass(slots=True, frozen=True)
class Named:
    """A register, counter, meter or calculation by name."""

    kind: str
    name: str


@dataclass(slots=True, frozen=True)
class Text:
    """A string."""

    value: str


@dataclass(slots=True, frozen=True)
class Vector:
    """A list of operands."""

    items: tuple[Expr, ...]


@dataclass(slots=True, frozen=True)
class Payload:
    """What follows the parsed headers (calculation inputs)."""


@dataclass(slots=True, frozen=True)
class Unknown:
    """Something not supported; ``what`` names it. Whoever would generate code for it refuses the program."""

    what: str


Expr = (
    Const
    | Truth
    | Field
    | Valid
    | Local
    | HeaderRef
    | StackRef
    | UnionRef
    | Last
    | Element
    | Access
    | Lookahead
    | Op
    | Named
    | Text
    | Vector
    | Payload
    | Unknown
)

_NAMED = {"calculation", "register_array", "meter_array", "counter_array"}


def parse(json: Json) -> Expr:
    """Read a type-value object (docs/JSON_format.md of behavioral-model)."""
    if isinstance(json, list):
        return Unknown("a list within a list")
    kind, value = json["type"], json.get("value")
    if kind == "expression":
        return parse(value) if "op" not in value else _parse_op(value)
    if kind == "field":
        header, name = value
        if name == "$valid$":
            return Valid(HeaderRef(header) if isinstance(header, str) else _parse_op(header))
        return Field(header, name)
    if kind == "hexstr":
        return Const(int(value, 16), int(json.get("bitwidth", 0)))
    if kind == "bool":
        return Truth(bool(value))
    if kind in ("local", "runtime_data"):
        return Local(int(value))
    if kind in ("header", "regular"):
        return HeaderRef(value)
    if kind in ("header_stack", "stack"):
        return StackRef(value)
    if kind == "header_union":
        return UnionRef(value)
    if kind == "union_stack":
        return Unknown(f"next of header union stack {value[0]}")
    if kind == "stack_field":
        return Last(*value)
    if kind == "lookahead":
        offset, width = value
        return Lookahead(int(offset), int(width))
    if kind == "string":
        return Text(value)
    if kind == "parameters_vector":
        return Vector(tuple(parse(item) for item in value))
    if kind == "payload":
        return Payload()
    if kind in _NAMED:
        return Named(kind, value)
    return Unknown(f"operand of type {kind}")


def _parse_op(json: Json) -> Expr:
    op = json["op"]
    left = json.get("left")
    if op in ("dereference_header_stack", "dereference_stack"):
        return Element(left["value"], parse(json["right"]))
    if op == "access_field":
        return Access(parse(left), int(json["right"]))
    if op in ("dereference_union_stack", "access_union_header", "==u", "!=u"):
        return Unknown(f"operator {op} on header unions")
    cond = json.get("cond")
    return Op(
        op,
        parse(left) if left is not None else None,
        parse(json["right"]) if json.get("right") is not None else None,
        parse(cond) if cond is not None else None,
    )


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the direct operands of an expression."""
    match expr:
        case Op(_, left, right, cond):
            return tuple(e for e in (cond, left, right) if e is not None)
        case Element(_, index):
            return (index,)
        case Access(header, _) | Valid(header):
            return (header,)
        case Vector(items):
            return items
    return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """Return the expression and everything below it."""
    yield expr
    for child in children(expr):
        yield from walk(child)
