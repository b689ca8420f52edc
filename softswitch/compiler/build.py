"""Build the runtime objects of a program, generate its code and bind the two."""

from __future__ import annotations

import json
from collections.abc import Collection
from struct import error
from typing import Any, cast

from softswitch.action_profiles import ActionProfile
from softswitch.compiler.assemble import Assembly
from softswitch.compiler.expr import Access, Element, Expr, Field, Json
from softswitch.compiler.model import ProgramDef, TableDef, Unsupported
from softswitch.compiler.reader import read_program
from softswitch.entries import ActionCall, ActionSpec, KeyField, MatchKind, MatchValue
from softswitch.externs import Counter, Meter, Register
from softswitch.pipeline import Digest, ParserStop, Pipeline, ProgramError, ValueSet
from softswitch.tables import Table


def compile_program(
    program: str | bytes | dict[str, Any],
    queues: int = 8,
    optional_keys: Collection[tuple[str, str]] = (),
) -> Pipeline:
    """Compile a program given as bmv2 JSON, for a switch with ``queues`` queues per port.

    ``optional_keys``: (table, key) whose match kind is optional in P4Info; p4c's JSON calls them ternary.
    Raises ``Unsupported`` (a construct this switch does not do), ``ValueError`` (not such a JSON).
    """
    parsed = program if isinstance(program, dict) else json.loads(program)
    if not isinstance(parsed, dict):
        raise ValueError("not a bmv2 JSON: no object")
    definition = read_program(parsed)
    if definition.refused:
        raise Unsupported(definition.refused)
    try:
        assembly = Assembly(definition, queues)
        source = assembly.source()
    except (KeyError, IndexError, TypeError, AttributeError, StopIteration) as e:
        raise ValueError(f"not a bmv2 JSON for v1model: {type(e).__name__} {e}") from e
    if definition.refused:
        raise Unsupported(definition.refused)
    pipeline = Pipeline(queues)
    pipeline.source = source
    _build_state(pipeline, definition, optional_keys)
    _bind(pipeline, assembly)
    try:
        code = compile(source, "<pipeline>", "exec")
    except (SyntaxError, RecursionError) as e:
        raise Unsupported([f"control flow nested too deep for Python ({e})"]) from e
    exec(code, pipeline.namespace)  # noqa: S102 - the code was generated right here
    pipeline.process = pipeline.namespace["process"]
    return pipeline


def _build_state(pipeline: Pipeline, p: ProgramDef, optional_keys: Collection[tuple[str, str]]) -> None:
    for profile in p.profiles.values():
        pipeline.action_profiles[profile.name] = ActionProfile(
            profile.name, profile.size, selector=profile.algorithm is not None
        )
    for control in (p.ingress, p.egress):
        for table in control.tables.values():
            pipeline.tables[table.name] = _table(pipeline, p, table, optional_keys)
    for name, size in p.counters.items():
        pipeline.counters[name] = Counter(name, size)
    for meter in p.meters.values():
        if meter.table is None:
            pipeline.meters[meter.name] = Meter(
                meter.name, meter.size, "bytes" if meter.unit == "bytes" else "packets"
            )
    for name, (size, width) in p.registers.items():
        pipeline.registers[name] = Register(name, size, width)
    for name, width in p.value_sets.items():
        pipeline.value_sets[name] = ValueSet(name, width)
    for name, fields in p.learn_lists.values():
        pipeline.digests[name] = Digest(name, tuple((f.name, p.field(f).width) for f in fields))


def _table(
    pipeline: Pipeline, p: ProgramDef, t: TableDef, optional_keys: Collection[tuple[str, str]]
) -> Table:
    keys: list[KeyField] = []
    for key in t.keys:
        width = _width(p, key.target)
        kind = "optional" if (t.name, key.name) in optional_keys else key.kind
        keys.append(KeyField(key.name, cast("MatchKind", kind), width))
    specs = [
        ActionSpec(a.name, a.number, tuple(w for _, w in a.params)) for a in (p.actions[n] for n in t.actions)
    ]
    default = ActionCall(p.actions[t.default[0]].name, t.default[1]) if t.default else None
    profile = pipeline.action_profiles[t.profile] if t.profile else None
    table = Table(
        t.name,
        keys,
        specs,
        t.size,
        default,
        default_const=t.default_const,
        profile=profile,
        direct_counter=p.direct_counters.get(t.name),
        direct_meter=t.meter,
        idle_timeout=t.timeout,
    )
    if profile is not None:
        profile.tables.append(table)
    if t.entries is not None:
        lowest = max((e.get("priority", 0) for e in t.entries), default=0)
        table.load_const_entries([_const_entry(p, table, e, lowest) for e in t.entries])
    return table


def _width(p: ProgramDef, key: Expr) -> int:
    """Return the bits of a key's target: a field, or a header's validity."""
    match key:
        case Field():
            return p.field(key).width
        case Access(Element(stack, _), index):
            return p.headers[p.stacks[stack][0]].fields[index].width
    return 1


def _const_entry(
    p: ProgramDef, table: Table, entry: Json, lowest: int
) -> tuple[list[MatchValue], int, ActionCall]:
    """Read an entry of the JSON. There a low priority number wins; here, as in P4Runtime, a high one."""
    match: list[MatchValue] = []
    for key, m in zip(table.keys, entry["match_key"], strict=True):
        value = int(m["key"], 16) if isinstance(m.get("key"), str) else int(m.get("key", 0))
        if key.kind == "exact":
            match.append(value)
        elif key.kind == "lpm":
            length = m["prefix_length"]
            match.append((value & key.maximum ^ (key.maximum >> length) & value, length))
        elif key.kind == "range":
            match.append((int(m["start"], 16), min(int(m["end"], 16), key.maximum)))
        else:
            mask = int(m["mask"], 16) & key.maximum
            optional = value if mask else None
            match.append(optional if key.kind == "optional" else (value & mask, mask))
    action = p.actions[entry["action_entry"]["action_id"]]
    args = tuple(int(d, 16) for d in entry["action_entry"]["action_data"])
    priority = lowest + 1 - entry["priority"] if table.prioritised else 0
    return match, priority, ActionCall(action.name, args)


def _bind(pipeline: Pipeline, assembly: Assembly) -> None:
    """Give the generated module its objects."""
    e = assembly.emitter
    space = pipeline.namespace
    space.update(e.namespace)
    for table in pipeline.tables.values():
        space[e.name("miss", table.name)] = table.miss
        space[e.name("get", table.name)] = (table.exact if table.all_exact else table.cache).get
        space[e.name("find", table.name)] = table.lookup
    for counter in pipeline.counters.values():
        space[e.name("packets", counter.name)] = counter.packets
        space[e.name("bytes", counter.name)] = counter.bytes
    for meter in pipeline.meters.values():
        space[e.name("meter", meter.name)] = meter.cells
    for register in pipeline.registers.values():
        space[e.name("reg", register.name)] = register.cells
    for values in pipeline.value_sets.values():
        space[e.name("values", values.name)] = values.values
    space.update(
        StructError=error,
        ParserStop=ParserStop,
        ProgramError=ProgramError,
        groups=pipeline.multicast.groups,
        pending=pipeline.pending,
        later=pipeline.later,
        drain=pipeline.drain,
        clone_to=pipeline.clone_to,
        no_such_queue=pipeline.no_such_queue,
    )
