"""A v1model program as typed objects, as ``reader`` makes them of the bmv2 JSON.

The format is docs/JSON_format.md of p4lang/behavioral-model; names are those the JSON and P4Info use.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from softswitch.compiler.expr import Expr, Field, Json


class Unsupported(Exception):  # noqa: N818 - it is what the program is
    """The program needs something this switch does not do; ``constructs`` names each.

    With its place in the P4.
    """

    def __init__(self, constructs: list[str]) -> None:
        super().__init__("not supported: " + "; ".join(constructs))
        self.constructs = constructs


@dataclass(slots=True)
class FieldDef:
    """A header type's field; ``width`` in bits, 0 for a varbit field."""

    name: str
    width: int
    signed: bool = False


@dataclass(slots=True)
class HeaderDef:
    """A header, metadata instance or stack element."""

    name: str
    fields: tuple[FieldDef, ...]
    metadata: bool
    max_bytes: int  # of a header with a varbit field, else 0

    @property
    def fixed_bytes(self) -> int:
        """Bytes without the varbit field."""
        return sum(f.width for f in self.fields) // 8

    @property
    def varbit(self) -> str | None:
        """The name of the varbit field, if any."""
        return next((f.name for f in self.fields if not f.width), None)

    def field(self, name: str) -> FieldDef:
        """Return the field of that name."""
        return next(f for f in self.fields if f.name == name)


@dataclass(slots=True)
class Primitive:
    """One step of an action or parser state."""

    op: str
    args: tuple[Expr, ...]
    where: str  # " (file.p4 line n)" or ""


@dataclass(slots=True)
class ActionDef:
    """An action: parameters (name, bits) and steps."""

    name: str
    number: int
    params: tuple[tuple[str, int], ...]
    primitives: tuple[Primitive, ...]


@dataclass(slots=True)
class Transition:
    """One case of a select: ``value`` under ``mask`` (None: all bits), a value set.

    Or the default (neither).
    """

    value: int | None
    mask: int | None
    value_set: str | None
    target: str | None


@dataclass(slots=True)
class StateDef:
    """A parser state."""

    name: str
    ops: tuple[Primitive, ...]
    key: tuple[Expr, ...]
    transitions: tuple[Transition, ...]


@dataclass(slots=True)
class KeyDef:
    """One component of a table's key; ``mask`` is applied to the field first."""

    name: str
    kind: str
    target: Expr
    mask: int | None


@dataclass(slots=True)
class TableDef:
    """A table with its place in the control flow: ``next`` by action name.

    Or by ``__HIT__`` and ``__MISS__``.
    """

    name: str
    keys: tuple[KeyDef, ...]
    size: int
    actions: tuple[int, ...]
    next: dict[str, str | None]
    base_next: str | None
    profile: str | None
    counters: bool
    meter: str | None
    timeout: bool
    default: tuple[int, tuple[int, ...]] | None
    default_const: bool
    entries: tuple[Json, ...] | None


@dataclass(slots=True)
class ConditionalDef:
    """An ``if`` of the control flow."""

    name: str
    expression: Expr
    true_next: str | None
    false_next: str | None


@dataclass(slots=True)
class ControlDef:
    """Ingress or egress."""

    name: str
    init: str | None
    tables: dict[str, TableDef]
    conditionals: dict[str, ConditionalDef]


@dataclass(slots=True)
class CalculationDef:
    """A hash or checksum over inputs, in order."""

    name: str
    algorithm: str
    inputs: tuple[Expr, ...]


@dataclass(slots=True)
class ChecksumDef:
    """A checksum field kept (``update``) or checked (``verify``) while ``condition`` holds."""

    target: Field
    calculation: str
    verify: bool
    update: bool
    condition: Expr | None


@dataclass(slots=True)
class ProfileDef:
    """An action profile; ``algorithm`` None: no selector."""

    name: str
    size: int
    algorithm: str | None
    inputs: tuple[Expr, ...]


@dataclass(slots=True)
class MeterDef:
    """A meter array; ``table`` and ``target`` for a direct one."""

    name: str
    size: int
    unit: str
    table: str | None
    target: Expr | None


@dataclass(slots=True)
class ProgramDef:
    """The whole program."""

    headers: dict[str, HeaderDef]
    stacks: dict[str, tuple[str, ...]]
    unions: dict[str, tuple[str, ...]]  # of each at most one member is valid
    errors: dict[str, int]
    init_state: str | None
    states: dict[str, StateDef]
    value_sets: dict[str, int]
    deparse_order: tuple[str, ...]
    actions: dict[int, ActionDef]
    ingress: ControlDef
    egress: ControlDef
    calculations: dict[str, CalculationDef]
    checksums: tuple[ChecksumDef, ...]
    profiles: dict[str, ProfileDef]
    counters: dict[str, int]  # indirect: name -> size
    direct_counters: dict[str, str]  # table -> name
    meters: dict[str, MeterDef]
    registers: dict[str, tuple[int, int]]  # name -> (size, bits)
    learn_lists: dict[int, tuple[str, tuple[Field, ...]]]
    field_lists: dict[int, tuple[Field, ...]]
    refused: list[str] = field(default_factory=list)

    def refuse(self, what: str) -> None:
        """Note a construct that this switch does not do; compiling goes on to find the others."""
        if what not in self.refused:
            self.refused.append(what)

    def rivals(self, header: str) -> tuple[str, ...]:
        """Return the other members of a header's union: they become invalid when it becomes valid."""
        members = next((m for m in self.unions.values() if header in m), ())
        return tuple(name for name in members if name != header)

    def field(self, ref: Field) -> FieldDef:
        """Return the definition of a field."""
        return self.headers[ref.header].field(ref.name)
