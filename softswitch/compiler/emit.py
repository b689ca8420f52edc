"""What every part of the generator shares: names of variables, constants of the generated module.

Expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from struct import Struct
from typing import Any

from softswitch.compiler import operations
from softswitch.compiler.expr import (
    Access,
    Const,
    Element,
    Expr,
    Field,
    HeaderRef,
    Last,
    Local,
    Lookahead,
    Op,
    StackRef,
    Truth,
    UnionRef,
    Unknown,
    Valid,
)
from softswitch.compiler.model import ProgramDef
from softswitch.compiler.usage import STANDARD, Usage
from softswitch.compiler.values import Val, bits, const, truncated


class Emitter:
    """Names and expressions for one program.

    ``namespace`` holds the objects the generated module refers to by name. ``params`` are the values of the
    action parameters in scope. ``stage`` is "ingress" or "egress": some intrinsic metadata is only there in
    egress.
    """

    def __init__(self, program: ProgramDef, usage: Usage) -> None:
        self.program = program
        self.usage = usage
        self.namespace: dict[str, Any] = {}
        self.params: list[Val] = []
        self.stage = "ingress"
        self.where = ""
        self._names: dict[tuple[str, ...], str] = {}
        self._taken: set[str] = set()
        self._structs: dict[tuple[str, str], str] = {}

    # names

    def name(self, kind: str, *parts: str) -> str:
        """Return a Python name for (kind, parts), the same every time."""
        key = (kind, *parts)
        if key not in self._names:
            base = "_".join([kind, *(re.sub(r"\W+", "_", p).strip("_") for p in parts)])
            name, n = base, 1
            while name in self._taken:
                n += 1
                name = f"{base}_{n}"
            self._taken.add(name)
            self._names[key] = name
        return self._names[key]

    def variable(self, ref: Field) -> str:
        """Return the variable of a field."""
        if self.program.headers[ref.header].metadata:
            name = ref.name.removeprefix("userMetadata.")
            return self.name("s" if ref.header == STANDARD else "m", name)
        return self.name("h", ref.header, ref.name)

    def valid(self, header: str) -> str:
        """Return the variable that says whether a header is valid."""
        return self.name("v", header)

    def offset(self, header: str) -> str:
        """Return the variable with a header's place in the packet; -1 when it is not from there."""
        return self.name("o", header)

    def length(self, header: str) -> str:
        """Return the variable with the bytes of a header's varbit field."""
        return self.name("n", header)

    def next_index(self, stack: str) -> str:
        """Return the variable with a stack's next index."""
        return self.name("i", stack)

    def struct(self, form: str, method: str) -> str:
        """Return a bound method of ``struct.Struct(form)`` in the namespace."""
        key = (form, method)
        if key not in self._structs:
            name = f"{method}_{form.strip('!')}"
            self.namespace[name] = getattr(Struct(form), method)
            self._structs[key] = name
        return self._structs[key]

    def bind(self, name: str, value: object) -> str:
        """Make an object known to the generated module under ``name``."""
        self.namespace[name] = value
        return name

    def refuse(self, what: str) -> Val:
        """Refuse the program for ``what`` (at the statement being generated) and go on."""
        self.program.refuse(what + self.where)
        return const(0)

    # expressions

    def value(self, expr: Expr) -> Val:
        """Code for the value of an expression."""
        match expr:
            case Const(value):
                return const(value)
            case Truth(value):
                return Val(str(value), int(value), int(value), truth=True)
            case Field():
                return self._field(expr)
            case Valid(header):
                return self._each(header, self._valid)
            case Local(index):
                return self.params[index]
            case Last(stack, name):
                return self._element(
                    stack, Val(f"{self.next_index(stack)} - 1"), lambda h: self._field(Field(h, name))
                )
            case Access(header, index):
                return self._each(
                    header, lambda h: self._field(Field(h, self.program.headers[h].fields[index].name))
                )
            case Lookahead(offset, width):
                return self.lookahead(offset, width)
            case Op():
                return self._op(expr)
            case Unknown(what):
                return self.refuse(what)
        return self.refuse(f"{type(expr).__name__} as a value")

    def condition(self, expr: Expr) -> str:
        """Code for an expression as a condition."""
        return self.value(expr).code

    def lookahead(self, offset: int, width: int) -> Val:
        """Bits of the packet beyond the parser's position ``off``.

        Too short a packet raises as extracting does.
        """
        start, size = offset // 8, (offset % 8 + width + 7) // 8
        at = f"off + {start}" if start else "off"
        code = {1: "B", 2: "H", 4: "I", 8: "Q"}.get(size)
        if code:
            whole = f"{self.struct('!' + code, 'unpack_from')}(packet, {at})[0]"
        else:
            whole = f"int.from_bytes({self.struct(f'!{size}s', 'unpack_from')}(packet, {at})[0], 'big')"
        after = size * 8 - offset % 8 - width
        shifted = f"{whole} >> {after}" if after else whole
        return bits(f"(({shifted}) & {(1 << width) - 1})" if offset % 8 else f"({shifted})", width)

    def store(self, ref: Field, value: Val) -> list[str]:
        """Statements that assign a value to a field."""
        if not self.usage.is_variable(ref):
            return []
        f = self.program.field(ref)
        return [f"{self.variable(ref)} = {truncated(value, f.width, signed=f.signed)}"]

    def assign(self, target: Expr, value: Val) -> list[str]:
        """Statements that assign a value to an lvalue."""
        match target:
            case Field():
                return self.store(target, value)
            case Last(stack, name):
                index = f"{self.next_index(stack)} - 1"
                return self._on_element(stack, index, lambda h: self.store(Field(h, name), value))
            case Access(HeaderRef(header), index):
                return self.store(Field(header, self.program.headers[header].fields[index].name), value)
            case Access(Element(stack, position), index):
                fields = self.program.headers[self.program.stacks[stack][0]].fields
                return self._on_element(
                    stack,
                    self.value(position).code,
                    lambda h: self.store(Field(h, fields[index].name), value),
                )
        self.refuse(f"assignment to {type(target).__name__}")
        return []

    def on_header(self, expr: Expr, code: Callable[[str], list[str]]) -> list[str]:
        """``code(header)`` for the header an expression stands for, chosen at run time where it must be."""
        match expr:
            case HeaderRef(name) if name in self.program.headers:
                return code(name)
            case Element(stack, index):
                return self._on_element(stack, self.value(index).code, code)
        self.refuse(f"{type(expr).__name__} as a header")
        return []

    def _on_element(self, stack: str, index: str, code: Callable[[str], list[str]]) -> list[str]:
        elements = self.program.stacks[stack]
        if index.isdigit():
            return code(elements[int(index)]) if int(index) < len(elements) else []
        lines = [f"element = {index}"]
        for i, header in enumerate(elements):
            body = code(header)
            lines += [f"{'elif' if i else 'if'} element == {i}:", *(" " + s for s in body or ["pass"])]
        return lines

    def _field(self, ref: Field) -> Val:
        f = self.program.field(ref)
        if ref.header == STANDARD and ref not in self.usage.writes:
            special = self._intrinsic(ref.name)
            if special is not None:
                return bits(special, f.width)
        return bits(self.variable(ref), f.width, signed=f.signed)

    def _intrinsic(self, name: str) -> str | None:
        """Metadata that is computed when it is read: the queue's depth costs a system call."""
        match name:
            case "enq_qdepth" | "deq_qdepth":
                return "(queue_depth(egress_port, queue) & 524287)" if self.stage == "egress" else "0"
            case "enq_timestamp":
                return "now_us" if self.stage == "egress" else "0"
            case "deq_timedelta":
                return "0"
        return None

    def _valid(self, header: str) -> Val:
        return Val(self.valid(header), 0, 1, truth=True)

    def _each(self, header: Expr, code: Callable[[str], Val]) -> Val:
        match header:
            case HeaderRef(name) if name in self.program.headers:
                return code(name)
            case Element(stack, index):
                return self._element(stack, self.value(index), code)
        return self.refuse(f"{type(header).__name__} as a header")

    def _element(self, stack: str, index: Val, code: Callable[[str], Val]) -> Val:
        elements = self.program.stacks[stack]
        if index.const is not None:
            return code(elements[index.const]) if index.const < len(elements) else const(0)
        found = code(elements[0])
        cases = [f"{code(h).code} if {index.code} == {i} else" for i, h in enumerate(elements)]
        return Val(f"({' '.join(cases)} 0)", found.low, found.high)

    def _op(self, e: Op) -> Val:
        op = e.op
        if op == "valid" and isinstance(e.right, HeaderRef):
            return self._valid(e.right.name)
        if op == "valid_union" and isinstance(e.right, UnionRef):
            members = [self.valid(name) for name in self.program.unions[e.right.name]]
            return Val(f"({' or '.join(members)})", 0, 1, truth=True)
        if op in ("last_stack_index", "size_stack") and isinstance(e.right, StackRef):
            index = self.next_index(e.right.name)
            return bits(f"({index} - 1 & 4294967295)" if op == "last_stack_index" else index, 32)
        if op in ("==h", "!=h"):
            same = self._same_header(e.left, e.right)
            return same if op == "==h" else Val(f"(not {same.code})", 0, 1, truth=True)
        assert e.right is not None
        right = self.value(e.right)
        found: Val | None
        if e.left is None:
            found = operations.unary(op, right)
        elif e.cond is not None:
            found = operations.choice(self.condition(e.cond), self.value(e.left), right)
        else:
            found = operations.binary(op, self.value(e.left), right)
        return self.refuse(f"operator {op}") if found is None else found

    def _same_header(self, left: Expr | None, right: Expr | None) -> Val:
        """Code for ``==`` between two headers: both invalid, or both valid with equal fields."""
        if not isinstance(left, HeaderRef) or not isinstance(right, HeaderRef):
            return self.refuse("comparison of computed headers")
        a, b = self.valid(left.name), self.valid(right.name)
        names = [f.name for f in self.program.headers[left.name].fields]
        same = " and ".join(
            f"{self.variable(Field(left.name, n))} == {self.variable(Field(right.name, n))}" for n in names
        )
        return Val(f"({a} == {b} and (not {a} or ({same})))", 0, 1, truth=True)
