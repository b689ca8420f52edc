"""Writes and reads of entities, handed to the module of each kind, with the rights of the client's role."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r
from grpc import StatusCode

from softswitch.errors import TableError
from softswitch.p4runtime import digests, direct, externs, profiles, replication, roles, table_entries
from softswitch.p4runtime.errors import P4Error, from_table_error, invalid
from softswitch.p4runtime.program import Program


def write(
    program: Program, update: p4r.Update, role: roles.RoleConfig, *, now_us: int, cpu_port: int
) -> None:
    """Apply one update. Raises P4Error; nothing has changed then."""
    kind = update.type
    if kind not in (p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE):
        raise invalid("an update must be an INSERT, MODIFY or DELETE")
    p4_id = object_id(update.entity)
    if not role.may_access(p4_id):
        raise P4Error(StatusCode.PERMISSION_DENIED, f"the client's role may not write object {p4_id:#x}")
    entity = update.entity
    try:
        match entity.WhichOneof("entity"):
            case "table_entry":
                table_entries.write(program, kind, entity.table_entry, now_us)
            case "action_profile_member":
                profiles.write_member(program, kind, entity.action_profile_member)
            case "action_profile_group":
                profiles.write_group(program, kind, entity.action_profile_group)
            case "counter_entry":
                externs.write_counter(program, kind, entity.counter_entry)
            case "direct_counter_entry":
                direct.write_counter(program, kind, entity.direct_counter_entry)
            case "meter_entry":
                externs.write_meter(program, kind, entity.meter_entry)
            case "direct_meter_entry":
                direct.write_meter(program, kind, entity.direct_meter_entry)
            case "register_entry":
                externs.write_register(program, kind, entity.register_entry)
            case "value_set_entry":
                externs.write_value_set(program, kind, entity.value_set_entry)
            case "packet_replication_engine_entry":
                replication.write(program, kind, entity.packet_replication_engine_entry, cpu_port)
            case "digest_entry":
                digests.write(program, kind, entity.digest_entry)
            case None:
                raise invalid("the update has no entity")
            case other:
                raise P4Error(StatusCode.UNIMPLEMENTED, f"entities of kind {other}")
    except TableError as error:
        raise from_table_error(error) from None


def read(program: Program, request: p4r.Entity, role: roles.RoleConfig, now_us: int) -> Iterator[p4r.Entity]:
    """Yield what one request of a batch selects, of what the role is shown. Raises P4Error."""
    try:
        for entity in _read(program, request, now_us):
            if role.may_access(object_id(entity)):
                yield entity
    except TableError as error:
        raise from_table_error(error) from None


def object_id(entity: p4r.Entity) -> int:
    """Return the P4Info id that decides whose an entity is; 0 for those without one (replication)."""
    match entity.WhichOneof("entity"):
        case "table_entry":
            return entity.table_entry.table_id
        case "action_profile_member":
            return entity.action_profile_member.action_profile_id
        case "action_profile_group":
            return entity.action_profile_group.action_profile_id
        case "counter_entry":
            return entity.counter_entry.counter_id
        case "direct_counter_entry":
            return entity.direct_counter_entry.table_entry.table_id
        case "meter_entry":
            return entity.meter_entry.meter_id
        case "direct_meter_entry":
            return entity.direct_meter_entry.table_entry.table_id
        case "register_entry":
            return entity.register_entry.register_id
        case "value_set_entry":
            return entity.value_set_entry.value_set_id
        case "digest_entry":
            return entity.digest_entry.digest_id
        case _:
            return 0


def _read(program: Program, request: p4r.Entity, now_us: int) -> Iterator[p4r.Entity]:
    match request.WhichOneof("entity"):
        case "table_entry":
            return table_entries.read(program, request.table_entry, now_us)
        case "action_profile_member":
            return profiles.read_members(program, request.action_profile_member)
        case "action_profile_group":
            return profiles.read_groups(program, request.action_profile_group)
        case "counter_entry":
            return externs.read_counters(program, request.counter_entry)
        case "direct_counter_entry":
            return direct.read_counters(program, request.direct_counter_entry)
        case "meter_entry":
            return externs.read_meters(program, request.meter_entry)
        case "direct_meter_entry":
            return direct.read_meters(program, request.direct_meter_entry)
        case "register_entry":
            return externs.read_registers(program, request.register_entry)
        case "value_set_entry":
            return externs.read_value_sets(program, request.value_set_entry)
        case "packet_replication_engine_entry":
            return replication.read(program, request.packet_replication_engine_entry)
        case "digest_entry":
            return digests.read(program, request.digest_entry)
        case None:
            raise invalid("a read request must have an entity")
        case other:
            raise P4Error(StatusCode.UNIMPLEMENTED, f"entities of kind {other}")
