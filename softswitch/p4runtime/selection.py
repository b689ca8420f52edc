"""Which entries of which tables a read means (spec, Wildcard Reads), and whose a direct resource is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from finsy.proto import p4r
from grpc import StatusCode

from softswitch import tables
from softswitch.entries import ActionCall, Entry
from softswitch.errors import TableError
from softswitch.p4runtime.errors import P4Error, invalid
from softswitch.p4runtime.info import Table
from softswitch.p4runtime.matches import decode_match, encode_match
from softswitch.p4runtime.program import Program


@dataclass(frozen=True)
class Found:
    """An entry and the table it is in."""

    table: Table
    entry: Entry
    is_default: bool
    is_const: bool


def key(found: Found) -> p4r.TableEntry:
    """Return the fields that identify an entry."""
    return p4r.TableEntry(
        table_id=found.table.id,
        match=[] if found.is_default else encode_match(found.table, found.entry.match),
        priority=found.entry.priority,
        is_default_action=found.is_default,
    )


def one(program: Program, message: p4r.TableEntry) -> Found:
    """Return the entry that ``message`` names. Raises NOT_FOUND (TableError) when there is none."""
    table = program.info.table(message.table_id)
    target = program.pipeline.tables[table.name]
    if message.is_default_action:
        _check_default_key(table, message)
        return Found(table, target.miss, is_default=True, is_const=target.default_const)
    entry = target.get(decode_match(table, message.match), message.priority)
    return Found(table, entry, is_default=False, is_const=entry.is_const)


def select(program: Program, request: p4r.TableEntry, wanted: Callable[[Table], bool]) -> Iterator[Found]:
    """Yield the entries that ``request`` selects, of tables that are ``wanted``.

    With table id 0 those of all tables, and of the other filters only ``is_default_action`` counts.
    """
    if request.table_id:
        yield from _of_table(program, program.info.table(request.table_id), request)
        return
    everything = p4r.TableEntry(is_default_action=request.is_default_action)
    for table in program.info.tables.values():
        if wanted(table):
            yield from _of_table(program, table, everything)


def _of_table(program: Program, table: Table, request: p4r.TableEntry) -> Iterator[Found]:
    target = program.pipeline.tables[table.name]
    if request.is_default_action:
        _check_default_key(table, request)
        yield Found(table, target.miss, is_default=True, is_const=target.default_const)
        return
    for entry in _matching(table, target, request):
        if _passes(program, request, entry):
            yield Found(table, entry, is_default=False, is_const=entry.is_const)


def _matching(table: Table, target: tables.Table, request: p4r.TableEntry) -> Iterator[Entry]:
    if not request.match:
        return target.entries()
    match = decode_match(table, request.match)
    if target.prioritised and not request.priority:
        return (entry for entry in target.entries() if entry.match == match)
    try:
        return iter([target.get(match, request.priority)])
    except TableError:
        return iter(())


def _passes(program: Program, request: p4r.TableEntry, entry: Entry) -> bool:
    """Whether ``entry`` passes the filters on priority, metadata and action id."""
    if request.priority and entry.priority != request.priority:
        return False
    if request.metadata and entry.metadata != request.metadata:
        return False
    if request.controller_metadata and entry.controller_metadata != request.controller_metadata:
        return False
    action_id = request.action.action.action_id
    if not action_id:
        return True
    return isinstance(entry.action, ActionCall) and (
        program.info.action_ids.get(entry.action.name) == action_id
    )


def _check_default_key(table: Table, message: p4r.TableEntry) -> None:
    if message.match or message.priority:
        raise invalid(f"table {table.name}: the default entry has neither match nor priority")


def require_modify(kind: int, what: str) -> None:
    """Raise INVALID_ARGUMENT for an INSERT or DELETE of something that is always there."""
    if kind != p4r.Update.MODIFY:
        raise invalid(f"a {what} can only be modified")


def refuse_meter_counters(*, given: bool) -> None:
    """Raise UNIMPLEMENTED when a message asks for, or sets, meters' per-colour counters."""
    if given:
        raise P4Error(StatusCode.UNIMPLEMENTED, "meters keep no per-colour counters here")
