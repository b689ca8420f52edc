"""Actions: each primitive as Python statements, jumps as nested blocks."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence

from softswitch.compiler.calculations import Calculations
from softswitch.compiler.emit import Emitter
from softswitch.compiler.expr import Const, Expr, Field, Named, StackRef, Text, Vector
from softswitch.compiler.model import ActionDef, Primitive
from softswitch.compiler.structure import Jump, Node, if_else, indent, structured
from softswitch.compiler.usage import STANDARD
from softswitch.compiler.values import Val, bits, const, truncated

_JUMPS = ("_jump", "_jump_if_zero")
_LOG = logging.getLogger("softswitch.program")


def random_between(low: int, high: int, old: int) -> int:
    """Return a uniform integer from ``low`` to ``high``; ``old`` when the range is empty.

    As bmv2 leaves the field alone.
    """
    return random.randint(low, high) if low <= high else old  # noqa: S311 - bmv2's is no better


class Actions:
    """Generates action bodies."""

    def __init__(self, emitter: Emitter, calculations: Calculations) -> None:
        self.emitter = emitter
        self.calculations = calculations
        self.program = emitter.program
        self.usage = emitter.usage
        self.tracks_length = Field(STANDARD, "packet_length") in self.usage.reads
        self._labels = 0
        self._simple: dict[str, Callable[[tuple[Expr, ...]], list[str]]] = {
            "assign": self._assign,
            "set": self._assign,
            "assign_VL": self._assign_varbit,
            "assign_header": self._assign_header,
            "assign_header_stack": self._assign_stack,
            "add_header": lambda a: self.emitter.on_header(a[0], self.add_header),
            "remove_header": lambda a: self.emitter.on_header(a[0], self.remove_header),
            "push": lambda a: self._shift(a, up=True),
            "pop": lambda a: self._shift(a, up=False),
            "mark_to_drop": self._drop,
            "modify_field_with_hash_based_offset": self._hash,
            "modify_field_rng_uniform": self._random,
            "register_read": self._register_read,
            "register_write": self._register_write,
            "count": self._count,
            "execute_meter": self._meter,
            "clone_ingress_pkt_to_egress": self._clone,
            "clone_egress_pkt_to_egress": self._clone,
            "resubmit": lambda a: [f"resubmit = {self._value(a[0])}"],
            "recirculate": lambda a: [f"recirculate = {self._value(a[0])}"],
            "generate_digest": lambda a: [f"digest = {self._value(a[1])}"],
            "truncate": lambda a: [f"limit = min(limit, {self._value(a[0])})"],
            "exit": lambda _: ["exited = True"],
            "no_op": lambda _: [],
            "log_msg": self._log,
        }

    def body(self, action: ActionDef, params: Sequence[Val]) -> list[str]:
        """Statements of an action with these parameter values."""
        self.emitter.params = list(params)
        steps = action.primitives
        if not any(p.op in _JUMPS for p in steps):
            return [line for p in steps for line in self.primitive(p)]
        self._labels += 1
        return structured(
            0 if steps else None,
            lambda node: self._targets(steps, node),
            lambda node, jump: self._render(steps, node, jump),
            f"a{self._labels}",
        )

    def exits(self, action: ActionDef) -> bool:
        """Whether an action may end the pipeline's control flow."""
        return any(p.op == "exit" for p in action.primitives)

    def primitive(self, p: Primitive) -> list[str]:
        """Statements of one primitive."""
        self.emitter.where = p.where
        if p.op in ("assert", "assume"):
            return self._assert(p)
        code = self._simple.get(p.op)
        if code is None:
            self.emitter.refuse(f"primitive {p.op}")
            return []
        return code(p.args)

    # jumps

    def _target(self, steps: Sequence[Primitive], arg: Expr) -> int | None:
        if not isinstance(arg, Const):
            self.emitter.refuse("computed jump")
            return None
        return arg.value if arg.value < len(steps) else None

    def _targets(self, steps: Sequence[Primitive], node: Node) -> list[int | None]:
        assert isinstance(node, int)
        p = steps[node]
        after = node + 1 if node + 1 < len(steps) else None
        if p.op == "_jump":
            return [self._target(steps, p.args[0])]
        if p.op == "_jump_if_zero":
            return [after, self._target(steps, p.args[1])]
        return [after]

    def _render(self, steps: Sequence[Primitive], node: Node, jump: Jump) -> list[str]:
        assert isinstance(node, int)
        p = steps[node]
        targets = self._targets(steps, node)
        if p.op == "_jump":
            return jump(targets[0])
        if p.op == "_jump_if_zero":
            self.emitter.where = p.where
            test = self.emitter.condition(p.args[0])
            return if_else(test, jump(targets[0]), jump(targets[1]))
        return self.primitive(p) + jump(targets[0])

    # fields and headers

    def _value(self, expr: Expr) -> str:
        return self.emitter.value(expr).code

    def _assign(self, args: tuple[Expr, ...]) -> list[str]:
        return self.emitter.assign(args[0], self.emitter.value(args[1]))

    def _assign_varbit(self, args: tuple[Expr, ...]) -> list[str]:
        target, source = args
        if not isinstance(target, Field) or not isinstance(source, Field):
            self.emitter.refuse("assignment of a computed varbit field")
            return []
        lines = [f"{self.emitter.variable(target)} = {self.emitter.variable(source)}"]
        return [*lines, *self._from_program(target.header)]

    def _from_program(self, header: str) -> list[str]:
        """Note that a header is not as it is in the packet."""
        lines = ["moved = True"]
        return [f"{self.emitter.offset(header)} = -1", *lines]

    def add_header(self, header: str) -> list[str]:
        """Make a header valid: all fields zero, unless it is valid already."""
        e = self.emitter
        names = [e.variable(Field(header, f)) for f in sorted(self.usage.use(header).tracked)]
        definition = self.program.headers[header]
        if definition.metadata:
            return []
        lines = [f"{e.valid(header)} = True", *self._from_program(header)]
        varbit = definition.varbit
        zeros = [n for n in names if varbit is None or n != e.variable(Field(header, varbit))]
        if zeros:
            lines.append(" = ".join([*zeros, "0"]))
        if varbit is not None:
            lines += [f"{e.variable(Field(header, varbit))} = b''", f"{e.length(header)} = 0"]
        if self.tracks_length:
            lines.append(f"size_now += {definition.fixed_bytes}")
        return [f"if not {e.valid(header)}:", *indent(lines + self.oust(header))]

    def oust(self, header: str) -> list[str]:
        """Make the other members of a header's union invalid; the packet's length stays, as in bmv2."""
        lines: list[str] = []
        for rival in self.program.rivals(header):
            lines += [f"if {self.emitter.valid(rival)}:", *indent([*self.emptied(rival), "moved = True"])]
        return lines

    def remove_header(self, header: str) -> list[str]:
        """Make a header invalid. Its fields read as zero in keys, as in bmv2."""
        e = self.emitter
        definition = self.program.headers[header]
        if definition.metadata:
            return []
        use = self.usage.use(header)
        lines = [f"{e.valid(header)} = False", "moved = True"]
        zeros = [
            e.variable(Field(header, f)) for f in sorted(use.tracked - use.lazy) if definition.field(f).width
        ]
        if self.tracks_length:
            varbit = f" + {e.length(header)}" if definition.varbit is not None else ""
            lines.append(f"size_now -= {definition.fixed_bytes}{varbit}")
        if zeros:
            lines.append(" = ".join([*zeros, "0"]))
        return [f"if {e.valid(header)}:", *indent(lines)]

    def header_state(self, header: str) -> list[str]:
        """Return the variables that make up a header."""
        e = self.emitter
        fields = [e.variable(Field(header, f)) for f in sorted(self.usage.use(header).tracked)]
        varbit = [e.length(header)] if self.program.headers[header].varbit is not None else []
        return [e.valid(header), e.offset(header), *varbit, *fields]

    def _copy_header(self, target: str, source: str) -> list[str]:
        e = self.emitter
        if target == source:
            return []
        if self.program.headers[target].metadata or self.program.headers[source].metadata:
            e.refuse(f"assignment between {source} and {target}")
            return []
        a, b = self.header_state(target), self.header_state(source)
        copy = [f"{x} = {y}" for x, y in zip(a, b, strict=True)]
        return [
            "moved = True",
            f"if {e.valid(source)}:",
            *indent(copy + self.oust(target)),
            "else:",
            f" {e.valid(target)} = False",
        ]

    def _assign_header(self, args: tuple[Expr, ...]) -> list[str]:
        return self.emitter.on_header(
            args[0], lambda t: self.emitter.on_header(args[1], lambda s: self._copy_header(t, s))
        )

    def _assign_stack(self, args: tuple[Expr, ...]) -> list[str]:
        target, source = args
        if not isinstance(target, StackRef) or not isinstance(source, StackRef):
            self.emitter.refuse("assignment of a computed header stack")
            return []
        pairs = zip(self.program.stacks[target.name], self.program.stacks[source.name], strict=True)
        index = f"{self.emitter.next_index(target.name)} = {self.emitter.next_index(source.name)}"
        return [index, *(line for t, s in pairs for line in self._copy_header(t, s))]

    def _shift(self, args: tuple[Expr, ...], *, up: bool) -> list[str]:
        stack, amount = args
        if not isinstance(stack, StackRef) or not isinstance(amount, Const):
            self.emitter.refuse("push_front or pop_front by a computed amount")
            return []
        elements = self.program.stacks[stack.name]
        n = min(amount.value, len(elements))
        index = self.emitter.next_index(stack.name)
        if not n:
            return []
        moves = [(i, i - n) for i in reversed(range(n, len(elements)))]
        if not up:
            moves = [(i - n, i) for i in range(n, len(elements))]
        lines = ["moved = True"]
        lines += [
            f"{index} = min({index} + {n}, {len(elements)})" if up else f"{index} = max({index} - {n}, 0)"
        ]
        for to, source in moves:
            a = ", ".join(self.header_state(elements[to]))
            lines.append(f"{a} = {', '.join(self.header_state(elements[source]))}")
        emptied = elements[:n] if up else elements[len(elements) - n :]
        for header in emptied:
            lines += self.emptied(header)
        return lines

    def emptied(self, header: str) -> list[str]:
        """Make a header invalid without touching the packet's length, as a shift of its stack does."""
        e = self.emitter
        zeros = [
            e.variable(Field(header, f.name))
            for f in self.program.headers[header].fields
            if f.width and f.name in self.usage.use(header).tracked
        ]
        return [f"{e.valid(header)} = False", *([" = ".join([*zeros, "0"])] if zeros else [])]

    def _drop(self, args: tuple[Expr, ...]) -> list[str]:
        del args
        lines = self.emitter.store(Field(STANDARD, "egress_spec"), const(511))
        if self.usage.multicasts:
            lines += self.emitter.store(Field(STANDARD, "mcast_grp"), const(0))
        return lines

    # externs

    def _hash(self, args: tuple[Expr, ...]) -> list[str]:
        target, base, calculation, size = args
        assert isinstance(calculation, Named)
        prepare, digest = self.calculations.code(calculation.name)
        b, s = self.emitter.value(base), self.emitter.value(size)
        modulus = s.code if s.low else f"({s.code} or 1)"
        if s.const is not None and digest.high is not None and digest.high < max(s.const, 1):
            value = digest
        else:
            value = Val(f"{digest.code} % {modulus}", 0, s.high - 1 if s.high else 0)
        if b.const != 0:
            high = None if value.high is None or b.high is None else value.high + b.high
            value = Val(f"({value.code}) + {b.code}", b.low, high)
        return prepare + self.emitter.assign(target, Val(f"({value.code})", value.low, value.high))

    def _random(self, args: tuple[Expr, ...]) -> list[str]:
        self.emitter.bind("random_between", random_between)
        low, high = self.emitter.value(args[1]), self.emitter.value(args[2])
        old = self.emitter.value(args[0]).code
        return self.emitter.assign(
            args[0], Val(f"random_between({low.code}, {high.code}, {old})", low.low, high.high)
        )

    def _in_bounds(self, index: Val, size: int, name: str, lines: list[str]) -> list[str]:
        """``lines`` if ``name`` stands for a valid index; bmv2 skips the operation too."""
        if index.low is not None and index.low >= 0 and index.high is not None and index.high < size:
            return lines
        return [f"if {name} < {size}:", *indent(lines)]

    def _index(self, expr: Expr) -> tuple[Val, str, list[str]]:
        value = self.emitter.value(expr)
        if value.code.isidentifier() or value.const is not None:
            return value, value.code, []
        return value, "index", [f"index = {value.code}"]

    def _register_read(self, args: tuple[Expr, ...]) -> list[str]:
        target, register, at = args
        assert isinstance(register, Named)
        size, width = self.program.registers[register.name]
        index, name, lines = self._index(at)
        cells = self.emitter.name("reg", register.name)
        return lines + self._in_bounds(
            index, size, name, self.emitter.assign(target, bits(f"{cells}[{name}]", width))
        )

    def _register_write(self, args: tuple[Expr, ...]) -> list[str]:
        register, at, source = args
        assert isinstance(register, Named)
        size, width = self.program.registers[register.name]
        index, name, lines = self._index(at)
        cells = self.emitter.name("reg", register.name)
        value = truncated(self.emitter.value(source), width)
        return lines + self._in_bounds(index, size, name, [f"{cells}[{name}] = {value}"])

    def _count(self, args: tuple[Expr, ...]) -> list[str]:
        counter, at = args
        assert isinstance(counter, Named)
        index, name, lines = self._index(at)
        packets = self.emitter.name("packets", counter.name)
        nbytes = self.emitter.name("bytes", counter.name)
        return lines + self._in_bounds(
            index,
            self.program.counters[counter.name],
            name,
            [f"{packets}[{name}] += 1", f"{nbytes}[{name}] += length"],
        )

    def _meter(self, args: tuple[Expr, ...]) -> list[str]:
        meter, at, target = args
        assert isinstance(meter, Named)
        definition = self.program.meters[meter.name]
        index, name, lines = self._index(at)
        cells = self.emitter.name("meter", meter.name)
        amount = "length" if definition.unit == "bytes" else "1"
        color = bits(f"{cells}[{name}].execute({amount}, now_us)", 2)
        return lines + self._in_bounds(index, definition.size, name, self.emitter.assign(target, color))

    def _clone(self, args: tuple[Expr, ...]) -> list[str]:
        session, fields = args
        return [f"clone = {self._value(session)} & 32767", f"clone_fields = {self._value(fields)}"]

    def _assert(self, p: Primitive) -> list[str]:
        test = self.emitter.condition(p.args[0])
        message = f"{p.op} failed{p.where}"
        return [f"if not {test}: raise ProgramError({message!r})"]

    def _log(self, args: tuple[Expr, ...]) -> list[str]:
        text = args[0]
        values = args[1].items if len(args) > 1 and isinstance(args[1], Vector) else ()
        if not isinstance(text, Text) or text.value.count("{") < len(values):
            self.emitter.refuse("log_msg without a matching format string")
            return []
        self.emitter.bind("log_info", _LOG.info)
        form = text.value.replace("%", "%%").replace("{}", "%s")
        return [f"log_info({', '.join([repr(form), *(self._value(v) for v in values)])})"]
