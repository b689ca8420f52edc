"""P4Info, indexed by id, and checked against the program it is said to describe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from finsy.proto import p4i

from softswitch.entries import MatchKind
from softswitch.p4runtime.errors import P4Error, invalid
from softswitch.p4runtime.packetio import ControllerHeader
from softswitch.pipeline import Pipeline

_KINDS: dict[int, MatchKind] = {
    p4i.MatchField.EXACT: "exact",
    p4i.MatchField.LPM: "lpm",
    p4i.MatchField.TERNARY: "ternary",
    p4i.MatchField.RANGE: "range",
    p4i.MatchField.OPTIONAL: "optional",
}


@dataclass(frozen=True)
class Param:
    """An action's parameter; ``width`` in bits."""

    id: int
    name: str
    width: int


@dataclass(frozen=True)
class Action:
    """An action and its parameters, in order."""

    id: int
    name: str
    params: tuple[Param, ...]


@dataclass(frozen=True)
class Field:
    """One field of a table's key; ``width`` in bits."""

    id: int
    name: str
    kind: MatchKind
    width: int


@dataclass(frozen=True)
class Table:
    """A table: its key, in order, and what its entries may say."""

    id: int
    name: str
    fields: tuple[Field, ...]
    scopes: dict[int, int]
    """Action id -> p4i.ActionRef.Scope."""
    profile_id: int
    """The action profile that implements it; 0: it has actions of its own."""
    counter_id: int
    """Its direct counter; 0: none."""
    meter: p4i.MeterSpec | None
    """Its direct meter's kind; None: it has none."""
    idle_timeout: bool
    is_const: bool
    positions: dict[int, int] = field(default_factory=dict)
    """Field id -> position in the key."""


class _HasPreamble(Protocol):
    preamble: p4i.Preamble


Described = TypeVar("Described", bound=_HasPreamble)


class Info:
    """The objects of a P4Info by id. ``find`` names what is missing to whoever asked for it."""

    def __init__(self, message: p4i.P4Info) -> None:
        """Index ``message``. Raises P4Error for what this switch cannot do (translation to strings)."""
        self.actions = {action.preamble.id: _action(action) for action in message.actions}
        self.action_ids = {action.name: action.id for action in self.actions.values()}
        self.counters = _by_id(message.counters)
        self.meters = _by_id(message.meters)
        self.registers = _by_id(message.registers)
        self.digests = _by_id(message.digests)
        self.value_sets = _by_id(message.value_sets)
        self.profiles = _by_id(message.action_profiles)
        self.types = message.type_info
        meters = _by_id(message.direct_meters)
        counters = _by_id(message.direct_counters)
        self.tables = {table.preamble.id: _table(table, counters, meters) for table in message.tables}
        self.table_ids = {table.name: table.id for table in self.tables.values()}
        self.digest_ids = {digest.preamble.name: digest_id for digest_id, digest in self.digests.items()}
        self.headers = {
            header.preamble.name: ControllerHeader(header) for header in message.controller_packet_metadata
        }
        """"packet_in" and "packet_out", where the program has them."""

    def table(self, table_id: int) -> Table:
        """Return the table with this id. Raises INVALID_ARGUMENT."""
        found = self.tables.get(table_id)
        if found is None:
            raise invalid(f"P4Info has no table with id {table_id:#x}")
        return found

    def action(self, action_id: int) -> Action:
        """Return the action with this id. Raises INVALID_ARGUMENT."""
        found = self.actions.get(action_id)
        if found is None:
            raise invalid(f"P4Info has no action with id {action_id:#x}")
        return found


def find(objects: dict[int, Described], object_id: int, kind: str) -> Described:
    """Return the object with this id. Raises INVALID_ARGUMENT saying that there is no such ``kind``."""
    found = objects.get(object_id)
    if found is None:
        raise invalid(f"P4Info has no {kind} with id {object_id:#x}")
    return found


def check(info: Info, pipeline: Pipeline) -> None:
    """Raise INVALID_ARGUMENT naming the first object that the program does not have as P4Info says."""
    for table in info.tables.values():
        running = pipeline.tables.get(table.name)
        if running is None:
            raise _mismatch("table", table.name)
        described = [(key.kind, key.width) for key in table.fields]
        actual = [(key.kind, key.width) for key in running.keys]
        if described != actual:
            raise invalid(
                f"P4Info and program do not belong together: the key of table {table.name} is {described} in"
                f" P4Info and {actual} in the program"
            )
        for action_id in table.scopes:
            action = info.action(action_id)
            widths = tuple(param.width for param in action.params)
            if action.name not in running.actions or running.actions[action.name].widths != widths:
                raise _mismatch(f"table {table.name}, action", action.name)
    parts: tuple[tuple[str, dict[int, Any], dict[str, Any]], ...] = (
        ("counter", info.counters, pipeline.counters),
        ("meter", info.meters, pipeline.meters),
        ("register", info.registers, pipeline.registers),
        ("digest", info.digests, pipeline.digests),
        ("value set", info.value_sets, pipeline.value_sets),
        ("action profile", info.profiles, pipeline.action_profiles),
    )
    for kind, described_parts, actual_parts in parts:
        for part in described_parts.values():
            if part.preamble.name not in actual_parts:
                raise _mismatch(kind, part.preamble.name)


def _mismatch(kind: str, name: str) -> P4Error:
    return invalid(
        f"P4Info and program do not belong together: {kind} {name} is not in the program as described"
    )


def _by_id(objects: Any) -> dict[int, Any]:  # noqa: ANN401  (protobuf's repeated fields have no common type)
    return {item.preamble.id: item for item in objects}


def _action(action: p4i.Action) -> Action:
    params = tuple(Param(p.id, p.name, p.bitwidth) for p in action.params)
    for param in params:
        _refuse_strings(param.width, f"parameter {param.name} of action {action.preamble.name}")
    return Action(action.preamble.id, action.preamble.name, params)


def _table(table: p4i.Table, counters: dict[int, Any], meters: dict[int, Any]) -> Table:
    name = table.preamble.name
    fields = []
    for key in table.match_fields:
        if key.match_type not in _KINDS:
            kind = key.other_match_type or key.match_type
            raise invalid(f"field {key.name} of table {name}: match kind {kind} is not supported")
        _refuse_strings(key.bitwidth, f"field {key.name} of table {name}")
        fields.append(Field(key.id, key.name, _KINDS[key.match_type], key.bitwidth))
    direct = table.direct_resource_ids
    meter = next((meters[i].spec for i in direct if i in meters), None)
    return Table(
        id=table.preamble.id,
        name=name,
        fields=tuple(fields),
        scopes={ref.id: ref.scope for ref in table.action_refs},
        profile_id=table.implementation_id,
        counter_id=next((i for i in direct if i in counters), 0),
        meter=meter,
        idle_timeout=table.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL,
        is_const=table.is_const_table,
        positions={key.id: position for position, key in enumerate(fields)},
    )


def _refuse_strings(width: int, what: str) -> None:
    if not width:
        raise invalid(f"{what}: p4runtime_translation to strings is not supported")
