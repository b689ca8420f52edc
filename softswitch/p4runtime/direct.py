"""DirectCounterEntry and DirectMeterEntry: the counter and the meter of one table entry."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from softswitch.entries import Entry
from softswitch.p4runtime import selection
from softswitch.p4runtime.errors import invalid
from softswitch.p4runtime.info import Table
from softswitch.p4runtime.meter_config import decode_config, encode_config
from softswitch.p4runtime.program import Program


def counter_data(entry: Entry) -> p4r.CounterData:
    """Return an entry's direct counter."""
    return p4r.CounterData(packet_count=entry.packets, byte_count=entry.bytes)


def write_counter(program: Program, kind: int, message: p4r.DirectCounterEntry) -> None:
    """Set one entry's direct counter; no data leaves it as it is. Raises P4Error or TableError."""
    selection.require_modify(kind, "direct counter")
    found = selection.one(program, message.table_entry)
    _require_counter(found.table)
    if message.HasField("data"):
        found.entry.packets, found.entry.bytes = message.data.packet_count, message.data.byte_count


def read_counters(program: Program, request: p4r.DirectCounterEntry) -> Iterator[p4r.Entity]:
    """Yield the direct counters of the entries that ``request.table_entry`` selects.

    One entry that is named must be there (NOT_FOUND).
    """
    for found in _select(program, request.table_entry):
        if found.table.counter_id:
            message = p4r.DirectCounterEntry(table_entry=selection.key(found), data=counter_data(found.entry))
            yield p4r.Entity(direct_counter_entry=message)
        elif request.table_entry.table_id:
            _require_counter(found.table)


def write_meter(program: Program, kind: int, message: p4r.DirectMeterEntry) -> None:
    """Configure one entry's direct meter; no config is the default one. Raises P4Error or TableError."""
    selection.require_modify(kind, "direct meter")
    selection.refuse_meter_counters(given=message.HasField("counter_data"))
    found = selection.one(program, message.table_entry)
    configure_meter(found.table, found.entry, message.config)


def read_meters(program: Program, request: p4r.DirectMeterEntry) -> Iterator[p4r.Entity]:
    """Yield the direct meters of the entries selected, as ``read_counters`` does."""
    selection.refuse_meter_counters(given=request.HasField("counter_data"))
    for found in _select(program, request.table_entry):
        if found.entry.meter is not None:
            message = p4r.DirectMeterEntry(table_entry=selection.key(found))
            if found.entry.meter.config is not None:
                message.config.CopyFrom(encode_config(found.entry.meter.config))
            yield p4r.Entity(direct_meter_entry=message)
        elif request.table_entry.table_id:
            raise invalid(f"table {found.table.name} has no direct meter")


def configure_meter(table: Table, entry: Entry, config: p4r.MeterConfig) -> None:
    """Configure an entry's direct meter; the empty config is the default. Raises P4Error or TableError."""
    if table.meter is None or entry.meter is None:
        raise invalid(f"table {table.name} has no direct meter")
    entry.meter.configure(decode_config(config, table.meter, f"table {table.name}"))


def _select(program: Program, request: p4r.TableEntry) -> Iterator[selection.Found]:
    if request.match or request.is_default_action:
        return iter([selection.one(program, request)])
    return selection.select(program, request, lambda _: True)


def _require_counter(table: Table) -> None:
    if not table.counter_id:
        raise invalid(f"table {table.name} has no direct counter")
