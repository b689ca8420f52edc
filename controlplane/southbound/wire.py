"""Table entries straight to protobuf's wire format, several times as fast as message objects. Pure.

Only for what the contract has: exact and LPM columns, one action a row. What comes before a value depends on
nothing but the value's length, so it is made once. Field numbers are taken from the messages' descriptors;
``tests/controlplane/southbound/test_wire.py`` holds the bytes against protobuf's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import getitem

from finsy.proto import p4r
from google.protobuf.message import Message

from controlplane.southbound.contract import TableIds
from controlplane.southbound.tables import Call, Key

_VARINT, _LENGTH = 0, 2
_LONGEST = 16
"""Bytes of a value: an IPv6 address."""

_LONGEST_ENTRY = 512
"""Bytes; ours are far shorter."""

_KEPT = 1 << 16
"""Values of one field of which what is written is kept: all that a port or a group may have."""


def varint(value: int) -> bytes:
    """Return ``value``, not negative, as a base-128 varint."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _tag(message: type[Message], field: str, wire_type: int = _LENGTH) -> bytes:
    return varint(message.DESCRIPTOR.fields_by_name[field].number << 3 | wire_type)


_UPDATES = _tag(p4r.WriteRequest, "updates")
_TYPE, _ENTITY = _tag(p4r.Update, "type", _VARINT), _tag(p4r.Update, "entity")
_TABLE_ENTRY = _tag(p4r.Entity, "table_entry")
_TABLE_ID, _MATCH = _tag(p4r.TableEntry, "table_id", _VARINT), _tag(p4r.TableEntry, "match")
_ENTRY_ACTION = _tag(p4r.TableEntry, "action")
_IS_DEFAULT = _tag(p4r.TableEntry, "is_default_action", _VARINT) + b"\x01"
_FIELD_ID = _tag(p4r.FieldMatch, "field_id", _VARINT)
_EXACT, _LPM = _tag(p4r.FieldMatch, "exact"), _tag(p4r.FieldMatch, "lpm")
_EXACT_VALUE = _tag(p4r.FieldMatch.Exact, "value")
_LPM_VALUE = _tag(p4r.FieldMatch.LPM, "value")
_LPM_LENGTH = _tag(p4r.FieldMatch.LPM, "prefix_len", _VARINT)
_ACTION = _tag(p4r.TableAction, "action")
_ACTION_ID, _PARAMS = _tag(p4r.Action, "action_id", _VARINT), _tag(p4r.Action, "params")
_PARAM_ID = _tag(p4r.Action.Param, "param_id", _VARINT)
_PARAM_VALUE = _tag(p4r.Action.Param, "value")


def canonical(value: int) -> bytes:
    """Return ``value`` as P4Runtime's canonical byte string (8.3). Raises OverflowError below 0."""
    return value.to_bytes((value.bit_length() + 7) // 8 or 1)


def masked(value: int, prefix_len: int, width: int) -> int:
    """Return ``value`` with all but its first ``prefix_len`` bits zero."""
    shift = width - prefix_len
    return value >> shift << shift


class _Field(dict[int, bytes]):
    """What is written of one field, by its value; made when it is first asked for, since values recur.

    ``before``: what comes before a value, by the value's length.
    """

    __slots__ = ("_before",)

    def __init__(self, before: Sequence[bytes]) -> None:
        self._before = before

    def __missing__(self, value: int) -> bytes:
        there = value.to_bytes((value.bit_length() + 7) // 8 or 1)  # canonical(), written out
        written = self._before[len(there)] + there
        if len(self) < _KEPT:
            self[value] = written
        return written


class TableWriter:
    """Writes the rows of one table."""

    def __init__(self, table: TableIds) -> None:
        self._head = _TABLE_ID + varint(table.id)
        self._tail = b"" if table.keys else _IS_DEFAULT
        self._exact = table.kind == "exact"
        self._fields = table.keys
        self._widths = table.widths
        self._columns = [_Field(_before_exact(field)) for field in table.keys]
        self._actions = {
            name: (_ACTION_ID + varint(action.id), [_Field(_before_param(param)) for param in action.params])
            for name, action in table.actions.items()
        }

    def write_request(self, kind: int, key: Key, call: Call | None) -> bytes:
        """Return a WriteRequest of one update, of ``kind``, and nothing else, serialised.

        Requests that are concatenated are one request with the updates of all. ``call`` None: no action.
        """
        match: Iterable[bytes]
        if self._exact:
            match = map(getitem, self._columns, key)  # type: ignore[arg-type]
        else:
            match = map(_prefix, self._fields, self._widths, key)
        if call is None:
            entry = b"".join((self._head, *match, self._tail))
        else:
            action_id, params = self._actions[call[0]]
            body = b"".join((action_id, *map(getitem, params, call[1])))
            entry = b"".join((self._head, *match, _BEFORE_ACTION[len(body)], body, self._tail))
        return _BEFORE_ENTRY[kind][len(entry)] + entry


def _before_action(length: int) -> bytes:
    """Return what comes before an Action of ``length`` bytes in an entry."""
    size = varint(length)
    return _ENTRY_ACTION + varint(length + len(size) + 1) + _ACTION + size


def _before_entry(kind: int, length: int) -> bytes:
    """Return what comes before an entry of ``length`` bytes, the one of an update of ``kind``."""
    entity = _TABLE_ENTRY + varint(length)
    update = _TYPE + varint(kind) + _ENTITY + varint(len(entity) + length) + entity
    return _UPDATES + varint(len(update) + length) + update


_BEFORE_ACTION = tuple(map(_before_action, range(_LONGEST_ENTRY)))
_BEFORE_ENTRY = tuple(
    tuple(_before_entry(kind, length) for length in range(_LONGEST_ENTRY)) for kind in range(4)
)
"""By the kind of an update, by the length of its entry."""


def _before_exact(field: int) -> list[bytes]:
    """Return, by a value's length, what comes before it in an exact FieldMatch of an entry."""
    before = []
    for length in range(_LONGEST + 1):
        match = _EXACT_VALUE + varint(length)
        body = _FIELD_ID + varint(field) + _EXACT + varint(len(match) + length) + match
        before.append(_MATCH + varint(len(body) + length) + body)
    return before


def _before_param(param: int) -> list[bytes]:
    """Return, by a value's length, what comes before it in a parameter of an action."""
    before = []
    for length in range(_LONGEST + 1):
        body = _PARAM_ID + varint(param) + _PARAM_VALUE + varint(length)
        before.append(_PARAMS + varint(len(body) + length) + body)
    return before


def _prefix(field: int, width: int, value: int | tuple[int, int]) -> bytes:
    """Return one LPM FieldMatch; nothing for a prefix of length 0, which is: do not care (9.1.1)."""
    assert not isinstance(value, int)
    bits, length = value
    if not length:
        return b""
    there = canonical(masked(bits, length, width))
    match = _LPM_VALUE + varint(len(there)) + there + _LPM_LENGTH + varint(length)
    body = _FIELD_ID + varint(field) + _LPM + varint(len(match)) + match
    return _MATCH + varint(len(body)) + body
