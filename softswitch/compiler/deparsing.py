"""From headers back to bytes.

As long as no header appeared, vanished or moved (``moved`` is false), the packet is copied once and only the
fields that code may have changed are written into the copy. Otherwise it is put together from pieces: headers
that came with the packet are copied and patched, the others packed from their fields.
"""

from __future__ import annotations

from softswitch.compiler.checksums import Checksums
from softswitch.compiler.emit import Emitter
from softswitch.compiler.expr import Field
from softswitch.compiler.layout import patch, runs, write
from softswitch.compiler.model import FieldDef
from softswitch.compiler.parsing import Parsing
from softswitch.compiler.structure import indent


class Deparsing:
    """Generates the deparser; its result is ``out``."""

    def __init__(self, emitter: Emitter, parsing: Parsing, checksums: Checksums) -> None:
        self.emitter = emitter
        self.parsing = parsing
        self.checksums = checksums
        self.program = emitter.program
        self.usage = emitter.usage
        varbit = any(
            not f.width and self.usage.use(h.name).created
            for h in self.program.headers.values()
            for f in h.fields
        )
        self.dynamic = bool(
            self.usage.revalidated or parsing.misplaced or "advance" in self.usage.ops or varbit
        )

    def code(self) -> list[str]:
        """Generate the statements."""
        lines = self.checksums.update_fields()
        in_place = self._in_place()
        if not self.dynamic:
            return lines + in_place
        return [*lines, "if moved:", *indent(self._pieces()), "else:", *indent(in_place)]

    def _headers(self) -> list[str]:
        """Return the headers that can be valid, in order."""
        return [
            h for h in self.program.deparse_order if h in self.parsing.places or self.usage.use(h).created
        ]

    def _in_place(self) -> list[str]:
        lines: list[str] = []
        for header in self._headers():
            if header in self.parsing.places:
                body = self._patched(header, self.parsing.place(header) or self.emitter.offset(header))
                if body:
                    lines += [f"if {self.emitter.valid(header)}:", *indent(body)]
        return ["out = bytearray(packet)", *lines] if lines else ["out = bytes(packet)"]

    def _pieces(self) -> list[str]:
        lines = ["out = bytearray()"]
        for header in self._headers():
            if not self.usage.use(header).created:
                body = self._copied(header)
            else:
                body = self._packed(header)
                if self.usage.siblings(header) & self.parsing.places.keys():
                    test = f"if {self.emitter.offset(header)} >= 0:"
                    body = [test, *indent(self._copied(header)), "else:", *indent(body)]
                body += self.checksums.update_bytes(header, "base")
            lines += [f"if {self.emitter.valid(header)}:", *indent(body)]
        return [*lines, "out += packet[off:]"]

    def _copied(self, header: str) -> list[str]:
        """Append a header from the packet, then patch it."""
        definition = self.program.headers[header]
        start = self.parsing.place(header) or self.emitter.offset(header)
        varbit = f" + {self.emitter.length(header)}" if definition.varbit is not None else ""
        end = f"{start} + {definition.fixed_bytes}{varbit}"
        if start.isdigit() and not varbit:
            end = str(int(start) + definition.fixed_bytes)
        created = self.usage.use(header).created
        body = self._patched(header, "base", checksums=not created)
        append = f"out += packet[{start}:{end}]"
        return ["base = len(out)", append, *body] if body or created else [append]

    def _patched(self, header: str, base: str, *, checksums: bool = True) -> list[str]:
        use = self.usage.use(header)
        lines: list[str] = []
        for run in runs(self.program.headers[header]):
            changed = [f.name for f in run.fields if f.name in use.dirty]
            if not changed:
                continue
            body = patch(run, changed, lambda f: self._stored(header, f), self._put, base)
            if len(changed) == 1 and changed[0] in use.lazy:
                test = f"if {self.emitter.variable(Field(header, changed[0]))} is not None:"
                body = [test, *indent(body)]
            lines += body
        return lines + (self.checksums.update_bytes(header, base) if checksums else [])

    def _put(self, form: str) -> str:
        return self.emitter.struct(form, "pack_into")

    def _packed(self, header: str) -> list[str]:
        definition = self.program.headers[header]
        form, values = write(definition, lambda f: self._stored(header, f))
        packed = f"{self.emitter.struct(form, 'pack')}({', '.join(values)})"
        lines = ["base = len(out)", f"out += {packed}"]
        if definition.varbit is not None:
            lines.append(f"out += {self.emitter.variable(Field(header, definition.varbit))}")
        return lines

    def _stored(self, header: str, f: FieldDef) -> str:
        name = self.emitter.variable(Field(header, f.name))
        return f"({name} & {(1 << f.width) - 1})" if f.signed else name
