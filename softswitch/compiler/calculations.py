"""Hash and checksum inputs as bytes, laid out as bmv2 does: fields back to back.

Those of invalid headers left out.
"""

from __future__ import annotations

from softswitch import hashes
from softswitch.compiler.emit import Emitter
from softswitch.compiler.expr import Const, Expr, Field, HeaderRef, Payload
from softswitch.compiler.values import Val, bits

_PACKABLE = {8: "B", 16: "H", 32: "I", 64: "Q"}


class Calculations:
    """Generates calculations."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.program = emitter.program

    def code(self, name: str) -> tuple[list[str], Val]:
        """Statements that prepare a calculation, and its value."""
        calculation = self.program.calculations[name]
        return self.hash(calculation.algorithm, calculation.inputs)

    def hash(self, algorithm: str, inputs: tuple[Expr, ...]) -> tuple[list[str], Val]:
        """Compute a hash of inputs: statements that prepare it, and its value."""
        known = hashes.ALGORITHMS.get(algorithm)
        if known is None:
            return [], self.emitter.refuse(f"hash algorithm {algorithm}")
        function, width = known
        lines, data = self._data(inputs)
        self.emitter.bind(f"hash_{algorithm}", function)
        return lines, bits(f"hash_{algorithm}({data})", width)

    def _data(self, inputs: tuple[Expr, ...]) -> tuple[list[str], str]:
        """Code for the bytes of the inputs."""
        parts: list[tuple[str | None, int, str]] = []  # (header that must be valid, bits, code)
        joined: list[str] = []  # code of byte strings before the bits collected in parts
        headers: set[str] = set()

        def flush() -> None:
            if parts:
                joined.append(self._packed(parts))
                parts.clear()

        for item in inputs:
            match item:
                case Field(header, _):
                    f = self.program.field(item)
                    instance = self.program.headers[header]
                    guard = None if instance.metadata else self.emitter.valid(header)
                    if not f.width:
                        flush()
                        code = self.emitter.variable(item)
                        joined.append(f"({code} if {guard} else b'')" if guard else code)
                        continue
                    value = self.emitter.value(item).code
                    if f.signed:
                        value = f"({value} & {(1 << f.width) - 1})"
                    parts.append((guard, f.width, value))
                    headers.add(header)
                case Const(value, width):
                    parts.append((None, width, str(value)))
                case HeaderRef(header):
                    instance = self.program.headers[header]
                    guard = self.emitter.valid(header)
                    for f in instance.fields:
                        ref = Field(header, f.name)
                        if f.width:
                            parts.append((guard, f.width, self.emitter.value(ref).code))
                        else:
                            flush()
                            joined.append(f"({self.emitter.variable(ref)} if {guard} else b'')")
                case Payload():
                    flush()
                    joined.append("packet[off:]")
                case _:
                    self.emitter.refuse(f"{type(item).__name__} as the input of a calculation")
        flush()
        if len(joined) == 1:
            return [], joined[0]
        return [], f"b''.join(({', '.join(joined)},))" if joined else "b''"

    def _packed(self, parts: list[tuple[str | None, int, str]]) -> str:
        guards = sorted({guard for guard, _, _ in parts if guard})
        if all(width in _PACKABLE or width in (48, 128) for _, width, _ in parts):
            form, values = "!", list[str]()
            for _, width, code in parts:
                if width in _PACKABLE:
                    form += _PACKABLE[width]
                    values.append(code)
                else:
                    form += "HI" if width == 48 else "QQ"
                    low = 32 if width == 48 else 64
                    values += [f"{code} >> {low}", f"{code} & {(1 << low) - 1}"]
            fast = f"{self.emitter.struct(form, 'pack')}({', '.join(values)})"
        else:
            total = sum(width for _, width, _ in parts)
            left = total + -total % 8
            terms: list[str] = []
            for _, width, code in parts:
                left -= width
                terms.append(f"{code} << {left}" if left else code)
            fast = f"({' | '.join(terms)}).to_bytes({(total + 7) // 8}, 'big')"
        if not guards:
            return fast
        self.emitter.bind("gather", hashes.gather)
        slow = ", ".join(f"({guard or True}, {width}, {code})" for guard, width, code in parts)
        return f"({fast} if {' and '.join(guards)} else gather(({slow},)))"
