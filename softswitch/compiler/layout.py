"""Headers as bytes: which struct formats and shifts read, patch and write their fields.

A header is cut into runs, the shortest byte-aligned groups of fields. A run is read in one piece, by its own
struct code when it is 1, 2, 4 or 8 bytes long, else as two pieces or as a byte string.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from softswitch.compiler.model import FieldDef, HeaderDef

_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
_PAIRS = {3: (1, 2), 5: (4, 1), 6: (2, 4), 12: (4, 8), 16: (8, 8)}


@dataclass(slots=True, frozen=True)
class Run:
    """Consecutive fields that start and end on a byte; ``offset`` and ``size`` in bytes."""

    offset: int
    size: int
    fields: tuple[FieldDef, ...]

    def shift(self, field: FieldDef) -> int:
        """Bits to the right of a field within the run."""
        after = self.fields[self.fields.index(field) + 1 :]
        return sum(f.width for f in after)


def runs(header: HeaderDef) -> list[Run]:
    """Cut a header's fixed part into runs."""
    found: list[Run] = []
    start, bits, group = 0, 0, list[FieldDef]()
    for f in header.fields:
        if not f.width:
            continue
        group.append(f)
        bits += f.width
        if bits % 8 == 0:
            found.append(Run(start, bits // 8, tuple(group)))
            start, bits, group = start + bits // 8, 0, []
    return found


def _pieces(size: int) -> tuple[int, ...]:
    return (size,) if size in _CODES else _PAIRS.get(size, ())


def read(
    header: HeaderDef, wanted: Collection[str], target: Callable[[str], str], temp: str
) -> tuple[str, list[str], list[str]]:
    """Read fields of a header: (struct format over its fixed part, variables to unpack into.

    Statements after).

    ``target`` names the variable of a field; ``temp`` starts the names of temporaries.
    """
    form, names, after = "!", list[str](), list[str]()
    for n, run in enumerate(runs(header)):
        need = [f for f in run.fields if f.name in wanted]
        if not need:
            form += f"{run.size}x"
            continue
        single = len(run.fields) == 1
        pieces = _pieces(run.size)
        if single and len(pieces) == 1:
            form += _CODES[run.size]
            names.append(target(need[0].name))
            after += _signed(need[0], names[-1])
            continue
        if pieces:
            parts = [f"{temp}{n}_{i}" for i in range(len(pieces))]
            form += "".join(_CODES[p] for p in pieces)
            whole = parts[0] if len(parts) == 1 else f"({parts[0]} << {8 * pieces[1]} | {parts[1]})"
        else:
            parts = [f"{temp}{n}"]
            form += f"{run.size}s"
            whole = f"int.from_bytes({parts[0]}, 'big')"
        names += parts
        if (not single and len(need) > 1 and len(parts) != 1) or (not pieces and len(need) > 1):
            after.append(f"{temp}{n} = {whole}")
            whole = f"{temp}{n}"
        for f in need:
            shift = run.shift(f)
            code = f"{whole} >> {shift}" if shift else whole
            if f is not run.fields[0]:
                code = f"({code}) & {(1 << f.width) - 1}" if shift else f"{code} & {(1 << f.width) - 1}"
            after += [f"{target(f.name)} = {code}", *_signed(f, target(f.name))]
    return form, names, after


def _signed(f: FieldDef, name: str) -> list[str]:
    return [f"if {name} >> {f.width - 1}: {name} -= {1 << f.width}"] if f.signed else []


def write(header: HeaderDef, value: Callable[[FieldDef], str]) -> tuple[str, list[str]]:
    """Write a header's whole fixed part: (struct format, values). ``value`` gives a field's, non-negative."""
    form, values = "!", list[str]()
    for run in runs(header):
        whole = _combined(run, value, run.fields)
        pieces = _pieces(run.size)
        if len(pieces) == 1:
            form += _CODES[run.size]
            values.append(whole)
        elif pieces and len(run.fields) == 1:
            low = 8 * pieces[1]
            form += _CODES[pieces[0]] + _CODES[pieces[1]]
            values += [f"{whole} >> {low}", f"{whole} & {(1 << low) - 1}"]
        else:
            form += f"{run.size}s"
            values.append(f"({whole}).to_bytes({run.size}, 'big')")
    return form, values


def patch(
    run: Run,
    changed: Collection[str],
    value: Callable[[FieldDef], str],
    put: Callable[[str], str],
    base: str,
) -> list[str]:
    """Write the ``changed`` fields of one run into ``out``, which holds the rest of the header at ``base``.

    ``put`` names the ``pack_into`` of a struct format. (Assigning to a slice would take three times as long.)
    """
    start, size = _plus(base, run.offset), run.size
    fields = [f for f in run.fields if f.name in changed]
    whole = _combined(run, value, fields)
    keep = sum(((1 << f.width) - 1) << run.shift(f) for f in run.fields if f not in fields)
    if keep:
        end = _plus(base, run.offset + size)
        old = f"out[{start}]" if size == 1 else f"int.from_bytes(out[{start}:{end}], 'big')"
        whole = f"{whole} | {old} & {keep}"
    if size == 1:
        return [f"out[{start}] = {whole}"]
    if size in _CODES:
        return [f"{put('!' + _CODES[size])}(out, {start}, {whole})"]
    return [f"{put(f'!{size}s')}(out, {start}, ({whole}).to_bytes({size}, 'big'))"]


def _combined(run: Run, value: Callable[[FieldDef], str], fields: Collection[FieldDef]) -> str:
    parts = [f"{value(f)} << {run.shift(f)}" if run.shift(f) else value(f) for f in fields]
    return parts[0] if len(parts) == 1 else " | ".join(parts)


def _plus(base: str, n: int) -> str:
    if base.isdigit():
        return str(int(base) + n)
    return f"{base} + {n}" if n else base
