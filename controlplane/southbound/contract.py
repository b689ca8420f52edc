"""The data plane's contract, held against a P4Info: names, columns, widths; and the ids behind them.

Tables are looked up by alias, and actions by the last part of their name, so an operator's own pipeline that
includes the level control serves as well as the reference program, whatever else is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from finsy.proto import p4i

from controlplane.southbound.tables import FORWARDING_TABLES
from leveller.errors import UserError

Kind: TypeAlias = Literal["exact", "lpm"]
Params: TypeAlias = Mapping[str, int]
"""Name -> width in bits, in order."""


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table of the contract: key columns (name -> width), how they match, and actions with parameters."""

    keys: Params
    actions: Mapping[str, Params]
    kind: Kind = "exact"


_V4 = {"src": 32, "dst": 32}
_V6 = {"src": 128, "dst": 128}
_L4 = {"protocol": 8, "sport": 16, "dport": 16}
_SET_GROUP = {"set_group": {"group": 16, "slot": 32}}
_NHOP: Params = {"port": 9, "dmac": 48}
_ROUTES: Mapping[str, Params] = {"set_nhop": _NHOP, "set_ecmp": {"group": 16, "count": 16}, "drop": {}}

CONTRACT: Mapping[str, TableSpec] = {
    "edge_port": TableSpec({"ingress_port": 9}, {"host_facing": {}, "fabric_facing": {}}),
    "flow_group_v4": TableSpec(_V4 | _L4, _SET_GROUP),
    "flow_group_v6": TableSpec(_V6 | _L4, _SET_GROUP),
    "flow_group_qp_v4": TableSpec(_V4 | {"qp": 24}, _SET_GROUP),
    "flow_group_qp_v6": TableSpec(_V6 | {"qp": 24}, _SET_GROUP),
    "active_bank": TableSpec({}, {"set_bank": {"bank": 1}}),
    "group_level": TableSpec(
        {"bank": 1, "group": 16}, {"set_level": {"level": 8, "guard_us": 32, "slack_us": 32}}
    ),
    "level_queue": TableSpec({"level": 8}, {"set_queue": {"queue": 8, "dscp": 6, "rewrite": 1}}),
    "default_level": TableSpec({}, {"set_default_level": {"level": 8, "control_level": 8}}),
    "burst_gap": TableSpec({}, {"set_burst_gap": {"gap_us": 32}}),
    "ipv4_lpm": TableSpec({"dst": 32}, _ROUTES, "lpm"),
    "ipv6_lpm": TableSpec({"dst": 128}, _ROUTES, "lpm"),
    "ecmp": TableSpec({"group": 16, "member": 16}, {"set_nhop": _NHOP}),
    "ecmp_seed": TableSpec({}, {"set_seed": {"seed": 32}}),
    "int_node": TableSpec({}, {"set_int_node": {"node_id": 32}}),
    "int_sink": TableSpec({"egress_port": 9}, {"sink": {}, "relay": {}}),
}
"""P4Info alias -> what the controller relies on."""

_UNLIMITED = 2**31
"""For a table whose size the P4Info does not say."""

_MATCH_KINDS = {"exact": p4i.MatchField.EXACT, "lpm": p4i.MatchField.LPM}


@dataclass(frozen=True, slots=True)
class ActionIds:
    """An action's id, and its parameters' ids in the contract's order."""

    id: int
    params: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TableIds:
    """A table's id and size, its key columns' ids and widths in the contract's order, and its actions."""

    id: int
    size: int
    """Rows, as P4Info has it: a wish (P4Runtime specification, 9.1)."""
    kind: Kind
    keys: tuple[int, ...]
    widths: tuple[int, ...]
    actions: Mapping[str, ActionIds]


Binding: TypeAlias = Mapping[str, TableIds]


def bind(p4info: p4i.P4Info, source: str) -> Binding:
    """Return the ids of everything in the contract that is there.

    A pipeline that forwards in its own way may lack the tables of the reference forwarding. Raises UserError
    naming the first table, column, action or parameter of ``source`` (the P4Info's file) that is missing or
    of another width or match kind.
    """
    tables = {table.preamble.alias: table for table in p4info.tables}
    actions = {action.preamble.id: action for action in p4info.actions}
    return {
        name: _bind_table(name, spec, tables.get(name), actions, source)
        for name, spec in CONTRACT.items()
        if name in tables or name not in FORWARDING_TABLES
    }


def _bind_table(
    name: str, spec: TableSpec, table: p4i.Table | None, actions: Mapping[int, p4i.Action], source: str
) -> TableIds:
    if table is None:
        raise _mismatch(source, f"has no table {name!r}")
    fields = {field.name: field for field in table.match_fields}
    if extra := fields.keys() - spec.keys.keys():
        raise _mismatch(source, f"table {name!r} has an unknown key field {min(extra)!r}")
    for key, width in spec.keys.items():
        if key not in fields:
            raise _mismatch(source, f"table {name!r} has no key field {key!r}")
        if fields[key].bitwidth != width:
            raise _mismatch(source, f"field {name}.{key} is {fields[key].bitwidth} bits, not {width}")
        if fields[key].match_type != _MATCH_KINDS[spec.kind]:
            raise _mismatch(source, f"field {name}.{key} is not {spec.kind}")
    # By the last part of the name: a program may have one action of that name for each of several tables.
    there = {actions[ref.id].preamble.name.rpartition(".")[2]: actions[ref.id] for ref in table.action_refs}
    return TableIds(
        id=table.preamble.id,
        size=table.size or _UNLIMITED,
        kind=spec.kind,
        keys=tuple(fields[key].id for key in spec.keys),
        widths=tuple(spec.keys.values()),
        actions={
            action: _bind_action(f"{name}.{action}", params, there.get(action), source)
            for action, params in spec.actions.items()
        },
    )


def _bind_action(where: str, params: Params, action: p4i.Action | None, source: str) -> ActionIds:
    if action is None:
        raise _mismatch(source, f"has no action {where!r}")
    there = {param.name: param for param in action.params}
    if extra := there.keys() - params.keys():
        raise _mismatch(source, f"action {where!r} has an unknown parameter {min(extra)!r}")
    for param, width in params.items():
        if param not in there:
            raise _mismatch(source, f"action {where!r} has no parameter {param!r}")
        if there[param].bitwidth != width:
            raise _mismatch(source, f"parameter {where}.{param} is {there[param].bitwidth} bits, not {width}")
    return ActionIds(action.preamble.id, tuple(there[param].id for param in params))


def _mismatch(source: str, what: str) -> UserError:
    return UserError(
        f"{source}: {what}",
        "compile a program that includes this release's level control, and use its P4Info",
    )
