"""RECONCILE_AND_COMMIT: the forwarding state of one program carried over into another."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from softswitch.p4runtime import entities, roles
from softswitch.p4runtime.errors import P4Error, invalid
from softswitch.p4runtime.info import Info
from softswitch.p4runtime.program import Program

_ENTITIES = (
    p4r.Entity(action_profile_member=p4r.ActionProfileMember()),
    p4r.Entity(action_profile_group=p4r.ActionProfileGroup()),
    p4r.Entity(
        packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(
            multicast_group_entry=p4r.MulticastGroupEntry()
        )
    ),
    p4r.Entity(
        packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(
            clone_session_entry=p4r.CloneSessionEntry()
        )
    ),
    p4r.Entity(digest_entry=p4r.DigestEntry()),
    p4r.Entity(table_entry=p4r.TableEntry(counter_data=p4r.CounterData(), meter_config=p4r.MeterConfig())),
)
"""What is read from the old program and inserted into the new one, in an order that suits references."""


def carry_over(old: Program, new: Program, *, now_us: int, cpu_port: int) -> None:
    """Give ``new``, which nobody uses yet, the state of ``old`` for every object that both have.

    Raises INVALID_ARGUMENT naming what the new program has under the same name but cannot take.
    """
    for kind, update in _updates(old, new, now_us):
        try:
            entities.write(new, update, roles.FULL, now_us=now_us, cpu_port=cpu_port)
        except P4Error as error:
            raise invalid(f"the state cannot be kept: {kind}: {error.message}") from None
    _copy_cells(old, new)


def _updates(old: Program, new: Program, now_us: int) -> Iterator[tuple[str, p4r.Update]]:
    shared = _shared_ids(old.info, new.info)
    for request in _ENTITIES:
        for entity in entities.read(old, request, roles.FULL, now_us):
            object_id = entities.object_id(entity)
            if (not object_id or object_id in shared) and not entity.table_entry.is_const:
                kind = entity.WhichOneof("entity")
                yield kind or "", p4r.Update(type=p4r.Update.INSERT, entity=entity)
    for table in old.info.tables.values():
        if table.id in shared and not table.profile_id and not old.pipeline.tables[table.name].default_const:
            request = p4r.Entity(table_entry=p4r.TableEntry(table_id=table.id, is_default_action=True))
            request.table_entry.counter_data.SetInParent()
            request.table_entry.meter_config.SetInParent()
            for entity in entities.read(old, request, roles.FULL, now_us):
                yield "default entry", p4r.Update(type=p4r.Update.MODIFY, entity=entity)


def _copy_cells(old: Program, new: Program) -> None:
    """Copy arrays of the same name and shape in place: the running code has bound the lists themselves."""
    for name, counter in new.pipeline.counters.items():
        before = old.pipeline.counters.get(name)
        if before is not None and before.size == counter.size:
            counter.packets[:], counter.bytes[:] = before.packets, before.bytes
    for name, register in new.pipeline.registers.items():
        cells = old.pipeline.registers.get(name)
        if cells is not None and (cells.size, cells.width) == (register.size, register.width):
            register.cells[:] = cells.cells
    for name, meter in new.pipeline.meters.items():
        meters = old.pipeline.meters.get(name)
        if meters is not None and meters.size == meter.size:
            for cell, configured in zip(meter.cells, meters.cells, strict=True):
                cell.configure(configured.config)
    for name, value_set in new.pipeline.value_sets.items():
        if name in old.pipeline.value_sets and old.pipeline.value_sets[name].width == value_set.width:
            value_set.values = old.pipeline.value_sets[name].values


def _shared_ids(old: Info, new: Info) -> set[int]:
    """Return the ids that mean the same object in both: p4c derives them from the names."""
    shared = {i for i, table in old.tables.items() if i in new.tables and new.tables[i].name == table.name}
    for before, after in ((old.profiles, new.profiles), (old.digests, new.digests)):
        shared |= {i for i in before if i in after and after[i].preamble.name == before[i].preamble.name}
    return shared
