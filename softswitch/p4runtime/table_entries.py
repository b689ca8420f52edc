"""TableEntry (spec section of that name): entries and default entries, written and read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from finsy.proto import p4r
from grpc import StatusCode

from softswitch import tables
from softswitch.entries import ActionCall, Entry, GroupRef, MatchValue, MemberRef, OneShot, TableAction
from softswitch.p4runtime import direct, selection
from softswitch.p4runtime.actions import check_scope, decode_action, encode_action
from softswitch.p4runtime.errors import P4Error, invalid
from softswitch.p4runtime.info import Info, Table
from softswitch.p4runtime.matches import decode_match
from softswitch.p4runtime.meter_config import encode_config
from softswitch.p4runtime.one_shots import decode_one_shot, encode_one_shot
from softswitch.p4runtime.program import Program


def write(program: Program, kind: int, message: p4r.TableEntry, now_us: int) -> None:
    """Insert, modify or delete an entry, or modify a default entry. Raises P4Error or TableError.

    ``now_us`` is the switch's clock: a new entry's idle timeout starts there.
    """
    table = program.info.table(message.table_id)
    target = program.pipeline.tables[table.name]
    if message.is_default_action:
        _write_default(program, table, target, kind, message)
        return
    match = decode_match(table, message.match)
    if kind == p4r.Update.DELETE:
        target.delete(match, message.priority)
        return
    _check(table, message)
    if kind == p4r.Update.INSERT:
        if message.action.WhichOneof("type") is None:
            raise invalid(f"table {table.name}: an INSERT must have an action")
        entry = target.insert(
            match,
            _decode_action(program.info, table, message.action),
            message.priority,
            metadata=message.metadata,
            controller_metadata=message.controller_metadata,
            idle_timeout_ns=message.idle_timeout_ns,
            now_us=now_us,
        )
    else:
        entry = _modify(program.info, table, target, match, message, now_us)
    _set_direct(table, entry, message)


def read(program: Program, request: p4r.TableEntry, now_us: int) -> Iterator[p4r.Entity]:
    """Yield the entries that ``request`` selects, by table and in the order they were inserted.

    Counters, meters' configs and the time since the last hit are told when the request has the field.
    """
    for found in selection.select(program, request, lambda _: True):
        table, entry = found.table, found.entry
        message = selection.key(found)
        _encode_action(program.info, entry.action, message.action)
        if not message.action.WhichOneof("type"):
            message.ClearField("action")
        message.metadata = entry.metadata
        message.controller_metadata = entry.controller_metadata
        message.idle_timeout_ns = entry.idle_timeout_ns
        message.is_const = found.is_const
        if request.HasField("counter_data") and table.counter_id:
            message.counter_data.CopyFrom(direct.counter_data(entry))
        if request.HasField("meter_config") and entry.meter is not None and entry.meter.config is not None:
            message.meter_config.CopyFrom(encode_config(entry.meter.config))
        if request.HasField("time_since_last_hit") and table.idle_timeout:
            message.time_since_last_hit.elapsed_ns = max(0, now_us * 1000 - entry.last_hit_ns)
        yield p4r.Entity(table_entry=message)


def _check(table: Table, message: p4r.TableEntry) -> None:
    """Refuse what no INSERT or MODIFY of this table's entries may say."""
    if message.is_const:
        raise invalid(f"table {table.name}: is_const cannot be written")
    if message.HasField("time_since_last_hit"):
        raise invalid(f"table {table.name}: time_since_last_hit cannot be written")
    if message.idle_timeout_ns < 0 or (message.idle_timeout_ns and not table.idle_timeout):
        raise invalid(f"table {table.name}: no idle timeout of {message.idle_timeout_ns} ns is possible")
    if message.HasField("counter_data") and not table.counter_id:
        raise invalid(f"table {table.name} has no direct counter")
    if message.HasField("meter_config") and table.meter is None:
        raise invalid(f"table {table.name} has no direct meter")
    selection.refuse_meter_counters(given=message.HasField("meter_counter_data"))


def _modify(
    info: Info,
    table: Table,
    target: tables.Table,
    match: Sequence[MatchValue],
    message: p4r.TableEntry,
    now_us: int,
) -> Entry:
    if message.action.WhichOneof("type") is None:
        entry = target.get(match, message.priority)
    else:
        entry = target.modify(match, _decode_action(info, table, message.action), message.priority)
    if not entry.is_const:
        entry.metadata = message.metadata
        entry.controller_metadata = message.controller_metadata
        if entry.idle_timeout_ns != message.idle_timeout_ns:
            entry.last_hit_us = now_us
        entry.idle_timeout_ns = message.idle_timeout_ns
    return entry


def _write_default(
    program: Program, table: Table, target: tables.Table, kind: int, message: p4r.TableEntry
) -> None:
    if kind != p4r.Update.MODIFY:
        raise invalid(f"table {table.name}: the default entry is always there; it can only be modified")
    entry = selection.one(program, message).entry
    _check(table, message)
    if message.idle_timeout_ns:
        raise invalid(f"table {table.name}: the default entry has no idle timeout")
    if table.profile_id:
        raise P4Error(
            StatusCode.PERMISSION_DENIED,
            f"table {table.name}: the default entry of a table with an action profile is constant",
        )
    if message.action.WhichOneof("type") is None:
        target.reset_default()
    else:
        call = _decode_action(program.info, table, message.action, default=True)
        assert isinstance(call, ActionCall)
        target.set_default(call)
    entry.metadata = message.metadata
    entry.controller_metadata = message.controller_metadata
    _set_direct(table, entry, message)


def _set_direct(table: Table, entry: Entry, message: p4r.TableEntry) -> None:
    if message.HasField("counter_data"):
        entry.packets, entry.bytes = message.counter_data.packet_count, message.counter_data.byte_count
    if entry.meter is not None:
        direct.configure_meter(table, entry, message.meter_config)


def _decode_action(
    info: Info, table: Table, message: p4r.TableAction, *, default: bool = False
) -> TableAction:
    kind = message.WhichOneof("type")
    if (kind == "action") == bool(table.profile_id):
        wanted = "a member, a group or an action set" if table.profile_id else "an action"
        raise invalid(f"table {table.name}: an entry's action must be {wanted}, not {kind}")
    match kind:
        case "action":
            check_scope(info, table, message.action.action_id, default=default)
            return decode_action(info, message.action, table.scopes, f"table {table.name}")
        case "action_profile_member_id":
            return MemberRef(message.action_profile_member_id)
        case "action_profile_group_id":
            return GroupRef(message.action_profile_group_id)
        case _:
            return decode_one_shot(info, table, message.action_profile_action_set)


def _encode_action(info: Info, action: TableAction, message: p4r.TableAction) -> None:
    match action:
        case ActionCall():
            call = encode_action(info, action)
            if call.action_id:
                message.action.CopyFrom(call)
        case MemberRef(member_id):
            message.action_profile_member_id = member_id
        case GroupRef(group_id):
            message.action_profile_group_id = group_id
        case OneShot():
            message.action_profile_action_set.CopyFrom(encode_one_shot(info, action))
