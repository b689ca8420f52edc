"""Checksums kept and verified.

One over its whole header is computed from the bytes, any other from fields.
"""

from __future__ import annotations

from softswitch.compiler.calculations import Calculations
from softswitch.compiler.emit import Emitter
from softswitch.compiler.expr import Field, Truth
from softswitch.compiler.model import ChecksumDef
from softswitch.compiler.structure import indent
from softswitch.compiler.usage import STANDARD, covers_header


class Checksums:
    """Generates checksum verification (after the parser) and update (before the deparser)."""

    def __init__(self, emitter: Emitter, calculations: Calculations) -> None:
        self.emitter = emitter
        self.program = emitter.program
        self.calculations = calculations

    def _whole(self, c: ChecksumDef) -> bool:
        return covers_header(self.program, c.target, self.program.calculations[c.calculation])

    def _test(self, c: ChecksumDef) -> str:
        valid = self.emitter.valid(c.target.header)
        self.emitter.where = f" in checksum of {c.target.header}.{c.target.name}"
        if c.condition is None or c.condition == Truth(True):
            return valid
        return f"{valid} and {self.emitter.condition(c.condition)}"

    def verify(self, place: str | None, header: str) -> list[str]:
        """Statements that set checksum_error when a checksum of ``header`` at ``place`` is wrong."""
        error = Field(STANDARD, "checksum_error")
        if error not in self.emitter.usage.reads:
            return []
        lines: list[str] = []
        for c in self.program.checksums:
            if not c.verify or c.target.header != header:
                continue
            test = self._test(c)
            wrong = [f"{self.emitter.variable(error)} = 1"]
            if self._whole(c):
                at = place if place is not None else self.emitter.offset(header)
                body = [*self._sum(c, "packet", at), "if sum16 != old:", *indent(wrong)]
            else:
                prepare, value = self.calculations.code(c.calculation)
                body = [
                    *prepare,
                    f"if {value.code} != {self.emitter.variable(c.target)}:",
                    *indent(wrong),
                ]
            lines += [f"if {test}:", *indent(body)]
        return lines

    def update_fields(self) -> list[str]:
        """Statements that set the checksums computed from fields."""
        lines: list[str] = []
        for c in self.program.checksums:
            if c.update and not self._whole(c):
                test = self._test(c)
                prepare, value = self.calculations.code(c.calculation)
                lines += [f"if {test}:", *indent([*prepare, *self.emitter.store(c.target, value)])]
        return lines

    def update_bytes(self, header: str, base: str) -> list[str]:
        """Statements that set the checksums of ``header`` in its bytes at ``out[base]``.

        Everything else in place.
        """
        lines: list[str] = []
        for c in self.program.checksums:
            if not c.update or c.target.header != header or not self._whole(c):
                continue
            at = self._offset(c)
            where = [str(int(base) + at + i) if base.isdigit() else f"{base} + {at + i}" for i in (0, 1)]
            body = [
                *self._sum(c, "out", base),
                f"out[{where[0]}] = sum16 >> 8",
                f"out[{where[1]}] = sum16 & 255",
            ]
            if (
                c.condition is None
                or c.condition == Truth(True)
                or self._test(c).endswith(f" and {self.emitter.valid(header)}")
            ):
                lines += body
            else:
                lines += [f"if {self._test(c)}:", *indent(body)]
        return lines

    def _offset(self, c: ChecksumDef) -> int:
        total = 0
        for f in self.program.headers[c.target.header].fields:
            if f.name == c.target.name:
                break
            total += f.width
        return total // 8

    def _sum(self, c: ChecksumDef, buffer: str, base: str) -> list[str]:
        """Set ``old`` to the checksum in the bytes and ``sum16`` to what it should be.

        2**16 is 1 modulo 65535, so words of any multiple of 16 bits may be added up and reduced at the end.
        """
        size = self.program.headers[c.target.header].fixed_bytes
        at = self._offset(c)
        form, names, start, old = "!", list[str](), 0, ""
        for code, width in (("Q", 8), ("I", 4), ("H", 2)):
            while size - start >= width:
                name = f"w{len(names)}"
                if start <= at < start + width:
                    shift = 8 * (start + width - at - 2)
                    old = f"{name} >> {shift} & 65535" if shift else f"{name} & 65535"
                form += code
                names.append(name)
                start += width
        unpack = self.emitter.struct(form, "unpack_from")
        return [
            f"{', '.join(names)}{',' if len(names) == 1 else ''} = {unpack}({buffer}, {base})",
            f"old = {old}",
            f"total = {' + '.join(names)} - old",
            "sum16 = 65535 - (total % 65535 or (65535 if total else 0))",
        ]
