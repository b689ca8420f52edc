"""Rows to P4Runtime messages and back. Pure.

Byte strings are written in canonical form (shortest, zero is one zero byte) and read in any, by value;
don't-care fields are left out (P4Runtime specification, 8.3 and 9.1.1).
"""

from __future__ import annotations

from finsy.proto import p4r

from controlplane.southbound.contract import Binding, TableIds
from controlplane.southbound.diff import Change
from controlplane.southbound.tables import Call, Key, Match
from controlplane.southbound.wire import TableWriter, masked

MAX_UPDATES = 500
"""Updates in a Write: under 80 KB of our rows, far from gRPC's 4 MB, and a status that fits its metadata."""

_INSERT, _MODIFY, _DELETE = map(int, (p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE))

_CACHED_UPDATES = 200_000


class Encoder:
    """Makes messages with one program's ids.

    A Write is put together from updates byte for byte: serialised messages that are concatenated are one
    message with the fields of all.
    """

    def __init__(self, binding: Binding) -> None:
        self._binding = binding
        self._writers = {name: TableWriter(table) for name, table in binding.items()}
        self.sizes = {name: table.size for name, table in binding.items()}
        """Table -> rows that P4Info says it has room for."""
        self._by_id = {table.id: name for name, table in binding.items()}
        self._action_names = {
            (name, action.id): action_name
            for name, table in binding.items()
            for action_name, action in table.actions.items()
        }
        self._rankings: dict[Change, bytes] = {}

    def encoded(self, change: Change) -> bytes:
        """Return ``change`` as a serialised WriteRequest of nothing else, to be concatenated.

        Those of rankings are kept, as they come and go between few levels.
        """
        table, key, call, replace = change
        kind = _DELETE if call is None else _MODIFY if replace else _INSERT
        if table != "group_level":
            return self._writers[table].write_request(kind, key, call)
        encoded = self._rankings.get(change)
        if encoded is None:
            if len(self._rankings) >= _CACHED_UPDATES:
                self._rankings.clear()
            encoded = self._rankings[change] = self._writers[table].write_request(kind, key, call)
        return encoded

    def update(self, change: Change) -> p4r.Update:
        """Return ``change`` as a message."""
        return p4r.WriteRequest.FromString(self.encoded(change)).updates[0]

    def read_all(self) -> list[p4r.Entity]:
        """Return the entities that a ReadRequest needs to read back every table of the contract."""
        return [self.read(name) for name in self._binding]

    def read(self, table: str) -> p4r.Entity:
        """Return the entity that reads every row of ``table``."""
        ids = self._binding[table]
        return p4r.Entity(table_entry=p4r.TableEntry(table_id=ids.id, is_default_action=not ids.keys))

    def read_flow_counters(self, table: str) -> p4r.Entity:
        """Return the entity that reads all rows of ``table`` with their direct counters."""
        return p4r.Entity(
            table_entry=p4r.TableEntry(table_id=self._binding[table].id, counter_data=p4r.CounterData())
        )

    def read_flow_counter(self, table: str, key: Key) -> p4r.Entity:
        """Return the entity that reads one row of ``table`` with its direct counter."""
        entity = self.update(Change(table, key, None)).entity
        entity.table_entry.counter_data.SetInParent()
        return entity

    def decode(self, entry: p4r.TableEntry) -> tuple[str, Key, Call] | None:
        """Return (table, key, call) of an entry read back; None for a table that is not the contract's.

        An action that is not the contract's comes back under a name that nothing asks for, so that the
        row is seen to differ and is written over.
        """
        name = self._by_id.get(entry.table_id)
        if name is None:
            return None
        table = self._binding[name]
        action = entry.action.action
        call_name = self._action_names.get((name, action.action_id))
        if call_name is None:
            return name, _key(table, entry), Call(f"action {action.action_id}")
        values = {param.param_id: int.from_bytes(param.value) for param in action.params}
        params = table.actions[call_name].params
        return name, _key(table, entry), Call(call_name, tuple(values.get(param, 0) for param in params))


def _key(table: TableIds, entry: p4r.TableEntry) -> Key:
    there = {field.field_id: field for field in entry.match}
    key: list[Match] = []
    for field, width in zip(table.keys, table.widths, strict=True):
        match = there.get(field)
        if table.kind == "exact":
            key.append(int.from_bytes(match.exact.value) if match else 0)
        elif match is None:
            key.append((0, 0))
        else:
            length = match.lpm.prefix_len
            key.append((masked(int.from_bytes(match.lpm.value), length, width), length))
    return tuple(key)
