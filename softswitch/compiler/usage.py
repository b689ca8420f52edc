"""What a program reads, writes, creates and moves.

Decides which fields become variables of the generated code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product

from softswitch.compiler.expr import (
    Access,
    Element,
    Expr,
    Field,
    HeaderRef,
    Last,
    Named,
    Op,
    StackRef,
    walk,
)
from softswitch.compiler.layout import runs
from softswitch.compiler.model import CalculationDef, ControlDef, Primitive, ProgramDef

STANDARD = "standard_metadata"
_WRITES_FIRST = {
    "assign",
    "assign_VL",
    "set",
    "register_read",
    "modify_field_with_hash_based_offset",
    "modify_field_rng_uniform",
}


@dataclass(slots=True)
class HeaderUse:
    """How the headers of one class are used: those that are copied to one another, or shifted in one stack.

    ``tracked``: fields that are variables. ``dirty``: fields that code may change. ``created``: may become
    valid other than by extraction, so that all fields are tracked. ``lazy``: dirty fields that nothing reads,
    so that they are None until written.
    """

    tracked: set[str] = field(default_factory=set)
    dirty: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    created: bool = False
    lazy: set[str] = field(default_factory=set)


class Usage:
    """The analysis of a program, flow-insensitive."""

    def __init__(self, program: ProgramDef) -> None:
        self.program = program
        self.reads: set[Field] = {Field(STANDARD, "egress_spec")}
        self.writes: set[Field] = set()
        # Headers whose validity code changes.
        self.revalidated: set[str] = {name for members in program.unions.values() for name in members}
        self.created: set[str] = set()
        self.ops: set[str] = set()
        self.stacks_indexed: set[str] = set()  # stacks whose next index matters after parsing
        self._class: dict[str, str] = {name: name for name in program.headers}
        for elements in program.stacks.values():
            for other in elements[1:]:
                self._join(elements[0], other)
        self._scan()
        self.multicasts = Field(STANDARD, "mcast_grp") in self.writes
        self.reads |= {Field(STANDARD, name) for name in ("mcast_grp", "priority")} & self.writes
        self.headers = self._headers()

    def use(self, header: str) -> HeaderUse:
        """How a header's class is used."""
        return self.headers[self._root(header)]

    def siblings(self, header: str) -> set[str]:
        """Return the headers of the same class."""
        root = self._root(header)
        return {h for h in self.program.headers if self._root(h) == root}

    def is_variable(self, ref: Field) -> bool:
        """Whether a field lives in a variable (a metadata field that is only written does not)."""
        if self.program.headers[ref.header].metadata:
            return ref in self.reads
        return ref.name in self.use(ref.header).tracked

    def _scan(self) -> None:
        p = self.program
        for state in p.states.values():
            self._primitives(state.ops)
            self._read(state.key)
        for action in p.actions.values():
            self._primitives(action.primitives)
        for control in (p.ingress, p.egress):
            self._control(control)
        for checksum in p.checksums:
            calculation = p.calculations[checksum.calculation]
            if checksum.condition is not None:
                self._read([checksum.condition])
            if covers_header(p, checksum.target, calculation):
                continue  # computed from bytes
            if checksum.update:
                self.writes.add(checksum.target)
            self._read(calculation.inputs)
            if checksum.verify:
                self.reads.add(checksum.target)
        for _, fields in p.learn_lists.values():
            self._read(fields)
        for fields in p.field_lists.values():
            self._read(fields)
        for meter in p.meters.values():
            if isinstance(meter.target, Field):
                self.writes.add(meter.target)

    def _control(self, control: ControlDef) -> None:
        for table in control.tables.values():
            self._read(key.target for key in table.keys)
            if table.profile:
                self._read(self.program.profiles[table.profile].inputs)
        for conditional in control.conditionals.values():
            self._read([conditional.expression])

    def _primitives(self, primitives: Iterable[Primitive]) -> None:
        for primitive in primitives:
            self.ops.add(primitive.op)
            args = primitive.args
            match primitive.op:
                case op if op in _WRITES_FIRST:
                    self._write(args[0])
                    self._read(args[1:])
                case "execute_meter":
                    self._write(args[2])
                    self._read(args[:2])
                case "add_header" | "remove_header":
                    self._read_index(args[0])
                    names = set(self.header_names(args[0]))
                    self.revalidated |= names
                    if primitive.op == "add_header":
                        self.created |= names
                case "assign_header" | "assign_header_stack":
                    self._assign(args[0], args[1])
                case "push" | "pop" if isinstance(args[0], StackRef):
                    elements = self.program.stacks[args[0].name]
                    self.revalidated.update(elements)
                    self.created.update(elements)
                    self.stacks_indexed.add(args[0].name)
                case "extract" | "extract_VL":
                    self._read(args[1:])
                    if isinstance(args[0], StackRef):
                        self.stacks_indexed.add(args[0].name)
                case "mark_to_drop":
                    self.writes.add(Field(STANDARD, "egress_spec"))
                case _:
                    self._read(args)

    def _assign(self, target: Expr, source: Expr) -> None:
        if isinstance(target, StackRef) and isinstance(source, StackRef):
            pairs = list(zip(self.program.stacks[target.name], self.program.stacks[source.name], strict=True))
            self.stacks_indexed |= {target.name, source.name}
        else:
            self._read_index(target)
            self._read_index(source)
            pairs = list(product(self.header_names(target), self.header_names(source)))
        for a, b in pairs:
            self._join(a, b)
            self.revalidated.add(a)
            self.created.add(a)

    def header_names(self, expr: Expr) -> tuple[str, ...]:
        """Return the headers an expression may stand for."""
        match expr:
            case HeaderRef(name):
                return (name,)
            case Element(stack, _):
                return self.program.stacks[stack]
        return ()

    def fields(self, expr: Expr) -> Iterator[Field]:
        """Return the fields that one node of an expression may stand for."""
        match expr:
            case Field():
                yield expr
            case Last(stack, name):
                self.stacks_indexed.add(stack)
                yield from (Field(e, name) for e in self.program.stacks[stack])
            case Access(header, index):
                for name in self.header_names(header):
                    yield Field(name, self.program.headers[name].fields[index].name)
            case Op(op, left, right, _) if op in ("==h", "!=h"):
                for side in (left, right):
                    for name in self.header_names(side) if side is not None else ():
                        yield from (Field(name, f.name) for f in self.program.headers[name].fields)

    def _read(self, exprs: Iterable[Expr]) -> None:
        for expr in exprs:
            for node in walk(expr):
                self.reads.update(self.fields(node))
                if isinstance(node, Op) and isinstance(node.right, StackRef):
                    self.stacks_indexed.add(node.right.name)
                if isinstance(node, Named) and node.kind == "calculation":
                    self._read(self.program.calculations[node.name].inputs)
                if isinstance(node, HeaderRef) and node is expr:
                    self.reads.update(
                        Field(node.name, f.name) for f in self.program.headers[node.name].fields
                    )

    def _write(self, target: Expr) -> None:
        self.writes.update(self.fields(target))
        for node in walk(target):
            self._read_index(node)

    def _read_index(self, header: Expr) -> None:
        if isinstance(header, Element):
            self._read([header.index])

    def _root(self, name: str) -> str:
        while self._class[name] != name:
            name = self._class[name]
        return name

    def _join(self, a: str, b: str) -> None:
        self._class[self._root(a)] = self._root(b)

    def _headers(self) -> dict[str, HeaderUse]:
        found: dict[str, HeaderUse] = {}
        for name, header in self.program.headers.items():
            use = found.setdefault(self._root(name), HeaderUse())
            use.created |= name in self.created
            for f in header.fields:
                ref = Field(name, f.name)
                if ref in self.writes:
                    use.dirty.add(f.name)
                    if not f.width:
                        use.created = True
                if ref in self.reads:
                    use.read.add(f.name)
        for name, header in self.program.headers.items():
            use = found[self._root(name)]
            if use.created:
                use.tracked = {f.name for f in header.fields}
            else:
                use.tracked = use.read | use.dirty
                use.lazy = use.dirty - use.read
                for run in runs(header):
                    shared = {f.name for f in run.fields} & use.dirty
                    if len(shared) > 1:
                        use.lazy -= shared
        return found


def covers_header(program: ProgramDef, target: Field, calculation: CalculationDef) -> bool:
    """Whether a checksum is csum16 over all of its own header but itself.

    So that bytes will do instead of fields.
    """
    header = program.headers[target.header]
    rest = [Field(target.header, f.name) for f in header.fields if f.name != target.name]
    bits = 0
    for f in header.fields:
        if f.name == target.name:
            break
        bits += f.width
    return (
        calculation.algorithm in ("csum16", "cksum16")
        and list(calculation.inputs) == rest
        and header.varbit is None
        and header.field(target.name).width == 16
        and bits % 16 == 0
        and header.fixed_bytes % 2 == 0
    )
