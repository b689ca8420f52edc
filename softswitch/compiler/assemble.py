"""The whole module: ``process`` for packets as they come, and what copies of them go through.

``run`` is parser, ingress and the egress of a unicast packet in one function, so that fields stay in local
variables. Copies (multicast, clones) enter ``egress_copy`` with those variables as one tuple. A clone of the
incoming packet parses it again in ``clone_ingress``. What bmv2 queues behind the current packet (resubmitted,
recirculated, cloned at egress) waits in ``pending``.
"""

from __future__ import annotations

import re

from softswitch.compiler.actions import Actions
from softswitch.compiler.calculations import Calculations
from softswitch.compiler.checksums import Checksums
from softswitch.compiler.control import Control
from softswitch.compiler.deparsing import Deparsing
from softswitch.compiler.emit import Emitter
from softswitch.compiler.expr import Field
from softswitch.compiler.model import ProgramDef
from softswitch.compiler.parsing import Parsing
from softswitch.compiler.structure import indent
from softswitch.compiler.usage import STANDARD, Usage
from softswitch.pipeline import UNLIMITED

INGRESS_CLONE, EGRESS_CLONE, RECIRCULATED, REPLICATED, RESUBMITTED = 1, 2, 4, 5, 6
_DROP = 511
_NAME = re.compile(r"\w+")


class Assembly:
    """Generates the module of one program for a number of queues per port."""

    def __init__(self, program: ProgramDef, queues: int) -> None:
        self.program = program
        self.queues = queues
        self.usage = Usage(program)
        self.emitter = Emitter(program, self.usage)
        calculations = Calculations(self.emitter)
        self.actions = Actions(self.emitter, calculations)
        self.parsing = Parsing(self.emitter, self.actions)
        self.checksums = Checksums(self.emitter, calculations)
        self.deparsing = Deparsing(self.emitter, self.parsing, self.checksums)
        self.ingress = Control(program.ingress, self.emitter, self.actions, calculations)
        self.egress = Control(program.egress, self.emitter, self.actions, calculations)
        ops = self.usage.ops
        self.resubmits = "resubmit" in ops
        self.recirculates = "recirculate" in ops
        self.clones_in = "clone_ingress_pkt_to_egress" in ops
        self.clones_out = "clone_egress_pkt_to_egress" in ops
        self.copies = self.clones_in or self.clones_out or self.usage.multicasts
        self.truncates = "truncate" in ops
        self.kept = self._kept()

    def _kept(self) -> list[Field]:
        """Return the metadata fields that some field list preserves."""
        kept: list[Field] = []
        if self.resubmits or self.recirculates or self.clones_in or self.clones_out:
            for fields in self.program.field_lists.values():
                for f in fields:
                    if not self.program.headers[f.header].metadata:
                        self.program.refuse(f"header field {f.header}.{f.name} in a field list")
                    elif f not in kept:
                        kept.append(f)
        return kept

    def source(self) -> str:
        """Generate the module's source."""
        lines = self._run()
        if self.copies:
            lines += self._egress_copy()
        if self.clones_in:
            lines += self._clone_ingress()
        if self.resubmits or self.recirculates or self.clones_out:
            lines += [
                "def process(packet, port, now_us):",
                " run(packet, port, now_us)",
                " if pending: drain()",
            ]
        else:
            lines += ["process = run"]
        return "\n".join(lines) + "\n"

    # variables

    def _standard(self, name: str) -> str | None:
        """Return the variable of a standard metadata field, if the program uses it."""
        ref = Field(STANDARD, name)
        known = STANDARD in self.program.headers and any(
            f.name == name for f in self.program.headers[STANDARD].fields
        )
        return self.emitter.variable(ref) if known and self.usage.is_variable(ref) else None

    def _set(self, **values: str) -> list[str]:
        """Assign standard metadata, as far as the program uses it."""
        return [f"{v} = {code}" for name, code in values.items() if (v := self._standard(name)) is not None]

    def _metadata(self) -> dict[str, str]:
        """Every metadata variable with its initial value."""
        found: dict[str, str] = {}
        for header in self.program.headers.values():
            if header.metadata:
                for f in header.fields:
                    ref = Field(header.name, f.name)
                    if self.usage.is_variable(ref):
                        found[self.emitter.variable(ref)] = "0" if f.width else "b''"
        return found

    def _header_variables(self) -> dict[str, str]:
        """Every variable of headers and stacks with its initial value."""
        e = self.emitter
        found: dict[str, str] = {}
        for header in self.program.headers.values():
            if header.metadata:
                continue
            use = self.usage.use(header.name)
            found[e.valid(header.name)] = "False"
            if self.parsing.place(header.name) is None:
                found[e.offset(header.name)] = "-1"
            if header.varbit is not None:
                found[e.length(header.name)] = "0"
            for f in header.fields:
                if f.name in use.tracked:
                    initial = "None" if f.name in use.lazy else "0" if f.width else "b''"
                    found[e.variable(Field(header.name, f.name))] = initial
        found.update({e.next_index(s): "0" for s in self.program.stacks if s in self.usage.stacks_indexed})
        if self.deparsing.dynamic:
            found["moved"] = "False"
        return found

    def _function(self, head: str, body: list[str]) -> list[str]:
        """Define a function that starts with a packet: the variables it mentions have their initial values.

        They are parameters nobody passes: their defaults cost CPython less than half of what assignments do.
        """
        used = set(_NAME.findall("\n".join(body)))
        variables = {**self._metadata(), **self._header_variables()}
        defaults = "".join(f", {name}={value}" for name, value in variables.items() if name in used)
        start = ["length = len(packet)", "off = 0", *(f"{name} = length" for name in self._size())]
        return [f"def {head}{defaults}):", *indent([*start, *body])]

    def _initial(self, variables: dict[str, str]) -> list[str]:
        by_value: dict[str, list[str]] = {}
        for name, value in variables.items():
            by_value.setdefault(value, []).append(name)
        return [" = ".join([*names, value]) for value, names in by_value.items()]

    def _state(self, replaced: dict[str, str] | None = None) -> str:
        """Return a tuple of all variables; ``replaced`` gives other values for the metadata."""
        metadata = list(self._metadata())
        values = metadata if replaced is None else [replaced.get(m, "0") for m in metadata]
        rest = [*self._header_variables(), "off", *self._size()]
        return f"({', '.join([*values, *rest])},)"

    def _size(self) -> list[str]:
        return ["size_now"] if self.actions.tracks_length else []

    def _kept_values(self, fields: str) -> str:
        """Return a tuple of the kept fields as field list number ``fields`` has them."""
        if not self.kept:
            return "()"
        cases = ""
        for number, members in self.program.field_lists.items():
            values = [self._reading(f) if f in members else "0" for f in self.kept]
            cases += f"({', '.join(values)},) if {fields} == {number} else "
        return f"({cases}{(0,) * len(self.kept)})"

    def _reading(self, f: Field) -> str:
        return self.emitter.value(f).code

    # functions

    def _parse(self) -> list[str]:
        too_short = self._set(parser_error=str(self.parsing.error("PacketTooShort")))
        stopped = self._set(parser_error="stop.code")
        body = self.parsing.code()
        if not body:
            return []
        return [
            "try:",
            *indent(body),
            "except StructError:",
            *indent(too_short),
            "except ParserStop as stop:",
            *indent(stopped),
        ]

    def _run(self) -> list[str]:
        e = self.emitter
        e.stage = "ingress"
        again = self.resubmits or self.recirculates
        lines = self._set(ingress_port="port", packet_length="length", ingress_global_timestamp="now_us")
        if again:
            names = ["kind", *(e.variable(f) for f in self.kept)]
            inner = self._set(ingress_port="0", ingress_global_timestamp="0")
            inner += [f"{', '.join(names)}, = again", *self._set(instance_type="kind")]
            lines += ["if again is not None:", *indent(inner)]
        lines += self._parse()
        for header in self.parsing.places:
            lines += self.checksums.verify(self.parsing.place(header), header)
        if self.clones_in:
            lines.append("clone = None")
        if self.resubmits:
            lines.append("resubmit = 0")
        if "generate_digest" in self.usage.ops:
            lines.append("digest = 0")
        if self.truncates:
            lines.append(f"limit = {UNLIMITED}")
        lines += self.ingress.code()
        lines += self._after_ingress()
        lines += self._unicast()
        lines += self._egress(limited=self.truncates)
        argument = ", again=None" if again else ""
        return self._function(f"run(packet, port, now_us{argument}", lines)

    def _after_ingress(self) -> list[str]:
        lines: list[str] = []
        if self.clones_in:
            call = f"clone_ingress(packet, port, now_us, clone, {self._kept_values('clone_fields')})"
            lines += ["if clone is not None:", f" {call}"]
        if "generate_digest" in self.usage.ops:
            cases: list[str] = []
            for number, (name, fields) in self.program.learn_lists.items():
                values = ", ".join(self._reading(f) for f in fields)
                cases += [f"if digest == {number}: on_digest({name!r}, ({values},))"]
            lines += ["if digest:", *indent(cases)]
        if self.resubmits:
            again = f"({RESUBMITTED}, *{self._kept_values('resubmit')})"
            lines += ["if resubmit:", f" later(run, (packet, port, now_us, {again}))", " return"]
        if self.usage.multicasts:
            group = self._standard("mcast_grp")
            queue = self._standard("priority") or "0"
            call = self._copy_call(REPLICATED, queue, str(UNLIMITED), self._state())
            lines += [
                f"if {group}:",
                f" for copy in groups.get({group}, ()):",
                f"  {call}",
                " return",
            ]
        return [*lines, f"if {self._standard('egress_spec')} == {_DROP}: return"]

    def _copy_call(self, kind: int, queue: str, limit: str, state: str) -> str:
        return (
            f"egress_copy(packet, port, now_us, copy.port, copy.instance, {kind}, {queue}, {limit}, {state})"
        )

    def _unicast(self) -> list[str]:
        self.emitter.stage = "egress"
        priority = self._standard("priority")
        lines = [f"queue = {priority or 0}"]
        if priority is not None and self.queues < 8:
            lines += [f"if queue >= {self.queues}:", " no_such_queue(queue)", " return"]
        lines.append(f"egress_port = {self._standard('egress_spec')}")
        return lines + self._set(instance_type="0")

    def _egress(self, *, limited: bool) -> list[str]:
        """From egress on; expects ``queue`` and ``egress_port``.

        And ``limit`` if the packet may be cut short.
        """
        lines = self._set(
            egress_port="egress_port",
            egress_global_timestamp="now_us",
            egress_spec="0",
            packet_length="size_now",
        )
        if self.clones_out:
            lines.append("clone = None")
        if self.recirculates:
            lines.append("recirculate = 0")
        lines += self.egress.code()
        if self.clones_out:
            replaced = {self.emitter.variable(f): f"kept[{i}]" for i, f in enumerate(self.kept)}
            priority = self._standard("priority")
            queue = replaced.get(priority, "0") if priority is not None else "0"
            arguments = f"packet, port, now_us, clone, {EGRESS_CLONE}, {queue}, {self._state(replaced)}"
            inner = [f"kept = {self._kept_values('clone_fields')}", f"later(clone_to, ({arguments}))"]
            lines += ["if clone is not None:", *indent(inner)]
        lines.append(f"if {self._standard('egress_spec')} == {_DROP}: return")
        lines += self.deparsing.code()
        if self.recirculates:  # whole, as in bmv2, whatever truncate says
            again = f"({RECIRCULATED}, *{self._kept_values('recirculate')})"
            lines += ["if recirculate:", f" later(run, (bytes(out), port, now_us, {again}))", " return"]
        if limited:
            lines.append("if len(out) > limit: out = out[:limit]")
        return [*lines, "transmit(egress_port, queue, out)"]

    def _egress_copy(self) -> list[str]:
        self.emitter.stage = "egress"
        lines = [
            f"if queue >= {self.queues}:",
            " no_such_queue(queue)",
            " return",
            f"{self._state()} = state",
        ]
        lines.append("length = len(packet)")
        lines += self._set(instance_type="kind", egress_rid="instance")
        lines += self._egress(limited=True)
        head = "def egress_copy(packet, port, now_us, egress_port, instance, kind, queue, limit, state):"
        return [head, *indent(lines)]

    def _clone_ingress(self) -> list[str]:
        self.emitter.stage = "ingress"
        e = self.emitter
        lines = self._set(ingress_port="port")
        lines += self._parse()
        lines += self._initial(self._metadata())
        if self.kept:
            lines.append(f"{', '.join(e.variable(f) for f in self.kept)}, = kept")
        priority = self._standard("priority") or "0"
        lines.append(f"clone_to(packet, port, now_us, session, {INGRESS_CLONE}, {priority}, {self._state()})")
        return self._function("clone_ingress(packet, port, now_us, session, kept", lines)
