"""Match keys: p4.v1.FieldMatch and the values that the switch's tables match on, one into the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from finsy.proto import p4r

from softswitch.entries import MatchValue
from softswitch.p4runtime.errors import P4Error, invalid
from softswitch.p4runtime.info import Field, Table
from softswitch.p4runtime.values import decode, encode, prefix_mask


def decode_match(table: Table, match: Iterable[p4r.FieldMatch]) -> tuple[MatchValue, ...]:
    """Read an entry's key; fields left out are "don't care" (spec, Match Format).

    Raises INVALID_ARGUMENT naming table and field for whatever that section forbids.
    """
    values: list[MatchValue] = [_dont_care(key) for key in table.fields]
    seen: set[int] = set()
    for item in match:
        position = table.positions.get(item.field_id)
        if position is None:
            raise invalid(f"table {table.name} has no match field with id {item.field_id}")
        key = table.fields[position]
        if item.field_id in seen:
            raise invalid(f"table {table.name}: field {key.name} is given twice")
        seen.add(item.field_id)
        kind = item.WhichOneof("field_match_type")
        if kind != key.kind:
            raise invalid(
                f"table {table.name}: field {key.name} is matched {key.kind}, not {kind or 'by nothing'}"
            )
        values[position] = _decode_field(key, item, f"table {table.name}, field {key.name}")
    for key in table.fields:
        if key.kind == "exact" and key.id not in seen:
            raise invalid(
                f"table {table.name}: field {key.name} is missing; an exact match cannot be left out"
            )
    return tuple(values)


def encode_match(table: Table, values: Sequence[MatchValue]) -> list[p4r.FieldMatch]:
    """Write an entry's key in canonical form: "don't care" fields are left out."""
    match = []
    for key, value in zip(table.fields, values, strict=True):
        if key.kind == "exact":
            assert isinstance(value, int)
            match.append(p4r.FieldMatch(field_id=key.id, exact=p4r.FieldMatch.Exact(value=encode(value))))
        elif value != _dont_care(key):
            match.append(_encode_field(key, value))
    return match


def _dont_care(key: Field) -> MatchValue:
    match key.kind:
        case "lpm" | "ternary":
            return (0, 0)
        case "range":
            return (0, (1 << key.width) - 1)
        case _:
            return None


def _decode_field(key: Field, item: p4r.FieldMatch, where: str) -> MatchValue:
    width = key.width
    match key.kind:
        case "exact":
            return decode(item.exact.value, width, where)
        case "optional":
            return decode(item.optional.value, width, where)
        case "lpm":
            length = item.lpm.prefix_len
            if not 0 < length <= width:
                raise (
                    _dont_care_given(where) if not length else invalid(f"{where}: no prefix of {length} bits")
                )
            value = decode(item.lpm.value, width, where)
            if value & ~prefix_mask(length, width):
                raise invalid(f"{where}: {value:#x} has bits set after the first {length}")
            return value, length
        case "ternary":
            value, mask = decode(item.ternary.value, width, where), decode(item.ternary.mask, width, where)
            if not mask:
                raise _dont_care_given(where)
            if value & ~mask:
                raise invalid(f"{where}: {value:#x} has bits set outside the mask {mask:#x}")
            return value, mask
        case _:
            low, high = decode(item.range.low, width, where), decode(item.range.high, width, where)
            if low > high:
                raise invalid(f"{where}: the range {low}..{high} is empty")
            if (low, high) == _dont_care(key):
                raise _dont_care_given(where)
            return low, high


def _dont_care_given(where: str) -> P4Error:
    return invalid(f'{where}: "don\'t care" is said by leaving the field out')


def _encode_field(key: Field, value: MatchValue) -> p4r.FieldMatch:
    if isinstance(value, int):
        return p4r.FieldMatch(field_id=key.id, optional=p4r.FieldMatch.Optional(value=encode(value)))
    assert value is not None
    first, second = value
    match key.kind:
        case "lpm":
            return p4r.FieldMatch(
                field_id=key.id, lpm=p4r.FieldMatch.LPM(value=encode(first), prefix_len=second)
            )
        case "ternary":
            return p4r.FieldMatch(
                field_id=key.id, ternary=p4r.FieldMatch.Ternary(value=encode(first), mask=encode(second))
            )
        case _:
            return p4r.FieldMatch(
                field_id=key.id, range=p4r.FieldMatch.Range(low=encode(first), high=encode(second))
            )
