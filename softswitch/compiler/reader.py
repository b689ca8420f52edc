"""Read the bmv2 JSON that p4c writes, once, and note what is refused.

Numbers are made numbers here: they end up in generated code, where a string from a hostile JSON must not.

The format is docs/JSON_format.md of p4lang/behavioral-model.
"""

from __future__ import annotations

from softswitch.compiler.expr import Expr, Field, Json, Unknown, parse
from softswitch.compiler.model import (
    ActionDef,
    CalculationDef,
    ChecksumDef,
    ConditionalDef,
    ControlDef,
    FieldDef,
    HeaderDef,
    KeyDef,
    MeterDef,
    Primitive,
    ProfileDef,
    ProgramDef,
    StateDef,
    TableDef,
    Transition,
    Unsupported,
)


def where(json: Json) -> str:
    """Tell the P4 source line an object comes from, as a suffix for messages."""
    info = json.get("source_info") if isinstance(json, dict) else None
    return f" ({info['filename'].rsplit('/', 1)[-1]} line {info['line']})" if info and "line" in info else ""


def read_program(json: dict[str, Json]) -> ProgramDef:
    """Read a program. Raises ``ValueError`` (not a JSON for v1model), ``Unsupported``."""
    try:
        return _Reader(json).program()
    except (KeyError, TypeError, IndexError, StopIteration, AttributeError, ValueError) as e:
        raise ValueError(f"not a bmv2 JSON for v1model: {type(e).__name__} {e}") from e


class _Reader:
    def __init__(self, json: dict[str, Json]) -> None:
        self.json = json
        self.refused: list[str] = []

    def program(self) -> ProgramDef:
        j = self.json
        self.refused += [f"extern {e['type']} {e['name']}{where(e)}" for e in j.get("extern_instances", ())]
        if self.refused:
            raise Unsupported(self.refused)  # the rest refers to what was not read
        headers = self._headers()
        by_id = {h["id"]: h["name"] for h in j["headers"]}
        parser = self._only("parsers")
        controls = {c["name"]: c for c in j["pipelines"]}
        counters = j.get("counter_arrays", ())
        return ProgramDef(
            headers=headers,
            stacks={s["name"]: tuple(by_id[i] for i in s["header_ids"]) for s in j.get("header_stacks", ())},
            unions={u["name"]: tuple(by_id[i] for i in u["header_ids"]) for u in j.get("header_unions", ())},
            errors={name: int(n) for name, n in j.get("errors", ())},
            init_state=parser["init_state"],
            states={s["name"]: self._state(s) for s in parser["parse_states"]},
            value_sets={v["name"]: int(v["compressed_bitwidth"]) for v in j.get("parse_vsets", ())},
            deparse_order=tuple(self._deparser()),
            actions={int(a["id"]): self._action(a) for a in j["actions"]},
            ingress=self._control(controls["ingress"]),
            egress=self._control(controls["egress"]),
            calculations={c["name"]: self._calculation(c) for c in j.get("calculations", ())},
            checksums=tuple(_checksum(c) for c in j.get("checksums", ())),
            profiles={
                p["name"]: _profile(p) for c in controls.values() for p in c.get("action_profiles", ())
            },
            counters={c["name"]: int(c["size"]) for c in counters if not c.get("is_direct")},
            direct_counters={c["binding"]: c["name"] for c in counters if c.get("is_direct")},
            meters={m["name"]: self._meter(m) for m in j.get("meter_arrays", ())},
            registers={r["name"]: (int(r["size"]), int(r["bitwidth"])) for r in j.get("register_arrays", ())},
            learn_lists={
                int(x["id"]): (x["name"], self._fields(x["elements"], f"digest {x['name']}"))
                for x in j.get("learn_lists", ())
            },
            field_lists={
                int(x["id"]): self._fields(x["elements"], f"field list {x['name']}")
                for x in j.get("field_lists", ())
            },
            refused=self.refused,
        )

    def _only(self, key: str) -> Json:
        items = self.json[key]
        if len(items) != 1:
            self.refused.append(f"{len(items)} {key}")
        return items[0]

    def _headers(self) -> dict[str, HeaderDef]:
        types = {t["name"]: t for t in self.json["header_types"]}
        found: dict[str, HeaderDef] = {}
        for h in self.json["headers"]:
            t = types[h["header_type"]]
            fields = tuple(
                FieldDef(f[0], 0 if f[1] == "*" else int(f[1]), len(f) > 2 and bool(f[2]))
                for f in t["fields"]
            )
            header = found[h["name"]] = HeaderDef(
                h["name"], fields, bool(h["metadata"]), int(t.get("max_length") or 0)
            )
            if not header.metadata and sum(f.width for f in fields) % 8:
                self.refused.append(f"header {h['name']}: not a whole number of bytes")
            if header.varbit is not None and not header.metadata and fields[-1].width:
                self.refused.append(f"header {h['name']}: varbit field {header.varbit} is not the last")
        return found

    def _state(self, s: Json) -> StateDef:
        ops: list[Primitive] = []
        for op in s["parser_ops"]:
            json, kind = op, op["op"]
            if kind == "primitive":
                json = op["parameters"][0]
                kind = json["op"]
            ops.append(Primitive(kind, tuple(map(self._operand, json["parameters"])), where(json)))
        transitions = tuple(
            Transition(
                int(t["value"], 16) if t["type"] == "hexstr" else None,
                int(t["mask"], 16) if t.get("mask") else None,
                t["value"] if t["type"] == "parse_vset" else None,
                t["next_state"],
            )
            for t in s["transitions"]
        )
        return StateDef(s["name"], tuple(ops), tuple(map(parse, s["transition_key"])), transitions)

    def _deparser(self) -> list[str]:
        deparser = self._only("deparsers")
        if deparser.get("primitives"):
            self.refused.append(f"statements in deparser {deparser['name']}{where(deparser)}")
        return list(deparser["order"])

    def _operand(self, json: Json) -> Expr:
        return parse(json) if isinstance(json, dict) else Unknown(f"operand {json!r}")

    def _action(self, a: Json) -> ActionDef:
        return ActionDef(
            a["name"],
            int(a["id"]),
            tuple((p["name"], int(p["bitwidth"])) for p in a["runtime_data"]),
            tuple(
                Primitive(p["op"], tuple(map(self._operand, p["parameters"])), where(p))
                for p in a["primitives"]
            ),
        )

    def _control(self, c: Json) -> ControlDef:
        self.refused += [f"action call {a['name']}{where(a)}" for a in c.get("action_calls", ())]
        return ControlDef(
            c["name"],
            c["init_table"],
            {t["name"]: self._table(t) for t in c["tables"]},
            {
                n["name"]: ConditionalDef(n["name"], parse(n["expression"]), n["true_next"], n["false_next"])
                for n in c["conditionals"]
            },
        )

    def _table(self, t: Json) -> TableDef:
        keys: list[KeyDef] = []
        for k in t["key"]:
            target = k["target"]
            if k["match_type"] not in ("exact", "lpm", "ternary", "range", "optional", "valid"):
                self.refused.append(f"match kind {k['match_type']} in table {t['name']}{where(t)}")
            if isinstance(target, dict):
                expr = parse({"type": "expression", "value": target})
            else:
                path = target if isinstance(target, list) else [target, "$valid$"]
                expr = parse({"type": "field", "value": path})
            kind = "exact" if k["match_type"] == "valid" else k["match_type"]
            name = k.get("name") or str(target)
            keys.append(KeyDef(name, kind, expr, int(k["mask"], 16) if k.get("mask") else None))
        if t["type"] not in ("simple", "indirect", "indirect_ws"):
            self.refused.append(f"table type {t['type']} of {t['name']}{where(t)}")
        default = t.get("default_entry")
        return TableDef(
            name=t["name"],
            keys=tuple(keys),
            size=int(t.get("max_size") or 1024),
            actions=tuple(t["action_ids"]),
            next=t["next_tables"],
            base_next=t.get("base_default_next"),
            profile=t.get("action_profile"),
            counters=bool(t.get("with_counters")),
            meter=t.get("direct_meters"),
            timeout=bool(t.get("support_timeout")),
            default=(
                (default["action_id"], tuple(int(d, 16) for d in default["action_data"])) if default else None
            ),
            default_const=bool(default and default.get("action_const")),
            entries=tuple(t["entries"]) if t.get("entries") is not None else None,
        )

    def _calculation(self, c: Json) -> CalculationDef:
        return CalculationDef(c["name"], c["algo"], tuple(map(parse, c["input"])))

    def _meter(self, m: Json) -> MeterDef:
        if m.get("rate_count", 2) != 2:
            self.refused.append(f"meter {m['name']} with {m['rate_count']} rates{where(m)}")
        target = m.get("result_target")
        return MeterDef(
            m["name"],
            int(m["size"]),
            m["type"],
            m["binding"] if m.get("is_direct") else None,
            parse({"type": "field", "value": target}) if m.get("is_direct") and target else None,
        )

    def _fields(self, elements: Json, what: str) -> tuple[Field, ...]:
        found = tuple(parse(e) for e in elements)
        fields = tuple(f for f in found if isinstance(f, Field))
        if len(fields) != len(found):
            self.refused.append(f"{what}: an element that is no field")
        return fields


def _checksum(c: Json) -> ChecksumDef:
    condition = c.get("if_cond")
    return ChecksumDef(
        Field(*c["target"]),
        c["calculation"],
        c.get("verify", True),
        c.get("update", True),
        parse(condition) if condition is not None else None,
    )


def _profile(p: Json) -> ProfileDef:
    selector = p.get("selector")
    return ProfileDef(
        p["name"],
        int(p["max_size"]),
        selector["algo"] if selector else None,
        tuple(map(parse, selector["input"])) if selector else (),
    )
