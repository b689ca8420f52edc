"""The parser as straight code: one unpack per header, offsets and stack indexes folded where they are known.

The code runs inside ``try``: a packet that ends too early raises ``struct.error``, a failed ``verify`` and
the like ``ParserStop``. Headers read before stay valid and ``off`` is where parsing got to, as in bmv2.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from softswitch.compiler.actions import Actions
from softswitch.compiler.emit import Emitter
from softswitch.compiler.expr import Const, Expr, Field, HeaderRef, Last, Lookahead, StackRef, Unknown, walk
from softswitch.compiler.layout import read
from softswitch.compiler.model import Primitive, StateDef, Transition
from softswitch.compiler.structure import Jump, Node, comment, indent, structured

_ERRORS = {  # the core library's errors, where the program does not number them itself
    "NoError": 0,
    "PacketTooShort": 1,
    "NoMatch": 2,
    "StackOutOfBounds": 3,
    "HeaderTooShort": 4,
    "ParserTimeout": 5,
    "ParserInvalidArgument": 6,
}


@dataclass(slots=True)
class Facts:
    """What is known on entry to a state: the offset in bytes and each stack's next index (None.

    It varies).
    """

    off: int | None = 0
    index: dict[str, int | None] = field(default_factory=dict)

    def copy(self) -> Facts:
        """Return the same facts, to be changed."""
        return Facts(self.off, dict(self.index))

    def join(self, other: Facts) -> Facts:
        """Keep what both agree on."""
        index = {s: n if n == other.index[s] else None for s, n in self.index.items()}
        return Facts(self.off if self.off == other.off else None, index)


class Parsing:
    """Generates the parser."""

    def __init__(self, emitter: Emitter, actions: Actions) -> None:
        self.emitter = emitter
        self.actions = actions
        self.program = emitter.program
        self.usage = emitter.usage
        self.facts: dict[str, Facts] = {}
        self.places: dict[str, set[int | None]] = {}  # header -> offsets it is extracted at
        self._propagate()
        self.misplaced = self._misplaced()

    def error(self, name: str) -> int:
        """Return the number of a core error in this program."""
        return self.program.errors.get(name, _ERRORS[name])

    def place(self, header: str) -> str | None:
        """Return the offset of a header as a constant, if it is the same in every packet that has it."""
        places = self.places.get(header, set())
        if len(places) != 1 or self.usage.use(header).created:
            return None
        (only,) = places
        return None if only is None else str(only)

    def code(self) -> list[str]:
        """Generate the statements; they expect ``packet``, ``length`` and ``off``."""
        return structured(self.program.init_state, self._targets, self._render, "parse")

    # analysis

    def _next_states(self, state: StateDef) -> list[str]:
        return [t.target for t in state.transitions if t.target is not None]

    def _extracted(self, op: Primitive) -> tuple[str, ...]:
        if op.op not in ("extract", "extract_VL"):
            return ()
        target = op.args[0]
        if isinstance(target, StackRef):
            return self.program.stacks[target.name]
        return (target.name,) if isinstance(target, HeaderRef) else ()

    def _propagate(self) -> None:
        start = self.program.init_state
        if start is None:
            return
        self.facts[start] = Facts(0, dict.fromkeys(self.program.stacks, 0))
        pending = [start]
        while pending:
            name = pending.pop()
            state = self.program.states[name]
            facts = self.facts[name].copy()
            for op in state.ops:
                self._step(op, facts)
            for target in self._next_states(state):
                known = self.facts.get(target)
                joined = facts.copy() if known is None else known.join(facts)
                if known is None or joined != known:
                    self.facts[target] = joined
                    pending.append(target)
        for name, facts in self.facts.items():
            facts = facts.copy()
            for op in self.program.states[name].ops:
                for header in self._extracted(op):
                    source = op.args[0]
                    one = isinstance(source, HeaderRef) or header == self._next_element(source, facts)
                    self.places.setdefault(header, set()).add(facts.off if one else None)
                self._step(op, facts)

    def _next_element(self, target: Expr, facts: Facts) -> str | None:
        """Return the stack element that an extraction fills, if it is known."""
        assert isinstance(target, StackRef)
        elements = self.program.stacks[target.name]
        n = facts.index[target.name]
        return elements[n] if n is not None and n < len(elements) else None

    def _step(self, op: Primitive, facts: Facts) -> None:
        """Take a parser operation's effect on what is known."""
        for header in self._extracted(op)[:1]:
            known = facts.off is not None and op.op == "extract"
            facts.off = facts.off + self.program.headers[header].fixed_bytes if known else None  # type: ignore[operator]
        match op.op, op.args:
            case ("extract" | "extract_VL", (StackRef(stack), *_)):
                n = facts.index[stack]
                facts.index[stack] = None if n is None else n + 1
            case "advance", (Const(amount),) if facts.off is not None and amount % 8 == 0:
                facts.off += amount // 8
            case "advance", _:
                facts.off = None
            case "push" | "pop" | "assign_header_stack", (StackRef(stack), *_):
                facts.index[stack] = None

    def _misplaced(self) -> set[str]:
        """Headers that, once parsed, leave the packet out of deparsing order.

        The deparser must put it together.
        """
        order = {h: i for i, h in enumerate(self.program.deparse_order)}
        stacks = {e: s for s, elements in self.program.stacks.items() for e in elements}
        found = {h for h in self.places if h not in order}
        for name, state in self.program.states.items():
            reachable, pending = set[str](), [name]
            while pending:
                for target in self._next_states(self.program.states[pending.pop()]):
                    if target not in reachable:
                        reachable.add(target)
                        pending.append(target)
            beyond = {h for s in reachable for op in self.program.states[s].ops for h in self._extracted(op)}
            here = [(h, op.args[0]) for op in state.ops for h in self._extracted(op)]
            for i, (h, _) in enumerate(here):
                later = {x for x, _ in here[i + 1 :]} | beyond
                same = {x for x in later if h in stacks and stacks.get(x) == stacks[h]}
                found |= {x for x in later - same if order.get(x, -1) <= order.get(h, -1)}
        return found

    # states

    def _cases(self, state: StateDef) -> tuple[list[Transition], str | None]:
        """Return a state's cases and its default target."""
        cases = [t for t in state.transitions if t.value is not None or t.value_set is not None]
        default = next((t.target for t in state.transitions if t not in cases), None)
        return cases, default

    def _targets(self, node: Node) -> list[str | None]:
        cases, default = self._cases(self.program.states[str(node)])
        return [*(t.target for t in cases), default]

    def _render(self, node: Node, jump: Jump) -> list[str]:
        state = self.program.states[str(node)]
        facts = self.facts[state.name].copy()
        lines = [comment(f"state {state.name}")]
        for op in state.ops:
            self.emitter.where = op.where or f" in parser state {state.name}"
            lines += self._op(op, facts)
            self._step(op, facts)
        cases, default = self._cases(state)
        if not cases:
            return lines + jump(default)
        self.emitter.where = f" in parser state {state.name}"
        keys, prepare = self._keys(state, facts)
        lines += prepare
        for i, case in enumerate(cases):
            test = self._test(case, keys)
            lines += [f"{'elif' if i else 'if'} {test}:", *indent(jump(case.target))]
        other = jump(default)
        return [*lines, "else:", *indent(other)] if other else lines

    def _keys(self, state: StateDef, facts: Facts) -> tuple[list[tuple[str, int]], list[str]]:
        """Return the select's key components as (variable, bits), and the statements that compute them."""
        keys: list[tuple[str, int]] = []
        prepare: list[str] = []
        for i, expr in enumerate(state.key):
            value = self.emitter.value(self._known_last(expr, facts))
            width = value.high.bit_length() if value.high else 1
            if isinstance(expr, Lookahead):
                width = expr.width
            code = value.code
            if not code.isidentifier():
                prepare.append(f"key{i} = {code}")
                code = f"key{i}"
            keys.append((code, width))
        return keys, prepare

    def _known_last(self, expr: Expr, facts: Facts) -> Expr:
        """``stack.last`` as a plain field where the index is known."""
        if isinstance(expr, Last) and (n := facts.index[expr.stack]):
            return Field(self.program.stacks[expr.stack][n - 1], expr.field)
        return expr

    def _test(self, case: Transition, keys: list[tuple[str, int]]) -> str:
        if case.value_set is not None:
            name = self.emitter.name("values", case.value_set)
            whole = "0"
            for code, width in keys:
                whole = f"({whole} << {width} | {code})" if whole != "0" else code
            return f"{whole} in {name}"
        tests: list[str] = []
        assert case.value is not None
        right = 0
        for code, width in reversed(keys):
            size = (width + 7) // 8 * 8
            full = (1 << width) - 1
            value = case.value >> right & full
            mask = full if case.mask is None else case.mask >> right & full
            right += size
            if mask == full:
                tests.append(f"{code} == {value}")
            elif mask:
                tests.append(f"{code} & {mask} == {value & mask}")
        return " and ".join(reversed(tests)) or "True"

    # operations

    def _op(self, op: Primitive, facts: Facts) -> list[str]:
        match op.op, op.args:
            case "extract", (HeaderRef(name),):
                return self._extract(name, facts)
            case "extract", (StackRef(stack),):
                return self._extract_next(stack, facts, lambda h, f: self._extract(h, f))
            case "extract_VL", (HeaderRef(name), size):
                return self._extract_varbit(name, size, facts)
            case "extract_VL", (StackRef(stack), size):
                return self._extract_next(stack, facts, lambda h, f: self._extract_varbit(h, size, f))
            case "extract" | "extract_VL", (Unknown(what), *_):
                self.emitter.refuse(what)
                return []
            case "set", (target, source):
                source = self._known_last(source, facts)
                value = self.emitter.value(source)
                lines = self.emitter.assign(target, value)
                if not lines and any(isinstance(e, Lookahead) for e in walk(source)):
                    return [value.code]  # nobody wants it, but a packet too short for it is an error
                return lines
            case "verify", (condition, error):
                test = self.emitter.condition(condition)
                code = self.emitter.value(error).code
                return [f"if not {test}: raise ParserStop({code})"]
            case "advance", (Const(amount),) if amount % 8 == 0:
                forward = self._forward(amount // 8, facts)
                return [*self._need(f"{amount // 8}", facts), forward, "moved = True"]
            case "advance", (amount_expr,):
                amount_code = self.emitter.value(amount_expr).code
                return [
                    f"step = {amount_code}",
                    f"if step & 7: raise ParserStop({self.error('ParserInvalidArgument')})",
                    f"if off + (step >> 3) > length: raise ParserStop({self.error('PacketTooShort')})",
                    "off += step >> 3",
                    "moved = True",
                ]
        return self.actions.primitive(op)

    def _at(self, facts: Facts) -> str:
        return "off" if facts.off is None else str(facts.off)

    def _forward(self, size: int, facts: Facts) -> str:
        return f"off += {size}" if facts.off is None else f"off = {facts.off + size}"

    def _need(self, size: str, facts: Facts) -> list[str]:
        return [f"if {self._at(facts)} + {size} > length: raise ParserStop({self.error('PacketTooShort')})"]

    def _fields(self, name: str, facts: Facts) -> list[str]:
        """Read the fixed fields of a header at the parser's position, or at least see that they are there."""
        use = self.usage.use(name)
        header = self.program.headers[name]
        wanted = {f for f in use.tracked - use.lazy if header.field(f).width}
        form, names, after = read(header, wanted, lambda f: self.emitter.variable(Field(name, f)), "t")
        lines = [f"{self.emitter.variable(Field(name, f))} = None" for f in sorted(use.lazy)]
        if not names:
            return self._need(str(header.fixed_bytes), facts) + lines
        unpack = self.emitter.struct(form, "unpack_from")
        targets = ", ".join(names) + ("," if len(names) == 1 else "")
        return [f"{targets} = {unpack}(packet, {self._at(facts)})", *after, *lines]

    def _placed(self, name: str, facts: Facts) -> list[str]:
        lines = [f"{self.emitter.valid(name)} = True"]
        if name in self.misplaced:
            lines.append("moved = True")
        if self.place(name) is None:
            lines.append(f"{self.emitter.offset(name)} = {self._at(facts)}")
        return lines + self.actions.oust(name)

    def _extract(self, name: str, facts: Facts) -> list[str]:
        size = self.program.headers[name].fixed_bytes
        lines = self._fields(name, facts) + self._placed(name, facts)
        if self.program.headers[name].varbit is not None:
            lines.append(f"{self.emitter.length(name)} = 0")
        return [*lines, self._forward(size, facts)]

    def _extract_varbit(self, name: str, size: Expr, facts: Facts) -> list[str]:
        header = self.program.headers[name]
        count = self.emitter.length(name)
        fixed = header.fixed_bytes
        lines = [
            f"size = {self.emitter.value(size).code}",
            f"if size & 7: raise ParserStop({self.error('ParserInvalidArgument')})",
            f"if {self._at(facts)} + {fixed} + (size >> 3) > length: "
            f"raise ParserStop({self.error('PacketTooShort')})",
        ]
        if header.max_bytes:
            too_long = f"raise ParserStop({self.error('HeaderTooShort')})"
            lines.append(f"if {fixed} + (size >> 3) > {header.max_bytes}: {too_long}")
        lines += self._fields(name, facts)
        lines += [*self._placed(name, facts), f"{count} = size >> 3"]
        assert header.varbit is not None
        varbit = Field(name, header.varbit)
        start = f"off + {fixed}" if facts.off is None else str(facts.off + fixed)
        if self.usage.is_variable(varbit):
            lines.append(f"{self.emitter.variable(varbit)} = packet[{start}:{start} + {count}]")
        return [*lines, f"off = {start} + {count}"]

    def _extract_next(self, stack: str, facts: Facts, extract: object) -> list[str]:
        elements = self.program.stacks[stack]
        index = self.emitter.next_index(stack)
        full = f"raise ParserStop({self.error('StackOutOfBounds')})"
        assert callable(extract)
        n = facts.index[stack]
        if n is not None:
            if n >= len(elements):
                return [full]
            lines = list(extract(elements[n], facts))
            return [*lines, f"{index} = {n + 1}"] if stack in self.usage.stacks_indexed else lines
        lines = []
        for i, header in enumerate(elements):
            lines += [f"{'elif' if i else 'if'} {index} == {i}:", *indent(extract(header, facts))]
        return [*lines, "else:", f" {full}", f"{index} += 1"]
