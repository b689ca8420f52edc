"""CounterEntry, MeterEntry, RegisterEntry and ValueSetEntry: the indexed externs, and parser value sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from finsy.proto import p4i, p4r
from grpc import StatusCode

from softswitch import externs
from softswitch.p4runtime import selection
from softswitch.p4runtime.errors import P4Error, invalid
from softswitch.p4runtime.info import find
from softswitch.p4runtime.meter_config import decode_config, encode_config
from softswitch.p4runtime.p4data import decode_scalar, encode_data
from softswitch.p4runtime.program import Program
from softswitch.p4runtime.values import cell_range, decode, encode


def write_counter(program: Program, kind: int, message: p4r.CounterEntry) -> None:
    """Set a counter's cell, or all of them without an index; no data leaves them as they are."""
    selection.require_modify(kind, "counter")
    counter = _counter(program, message.counter_id)
    for index in cell_range(_index(message), counter.size, f"counter {counter.name}"):
        if message.HasField("data"):
            counter.write(index, message.data.packet_count, message.data.byte_count)


def read_counters(program: Program, request: p4r.CounterEntry) -> Iterator[p4r.Entity]:
    """Yield a counter's cell, or all of them without an index, or all of all counters with id 0."""
    for counter_id in _ids(request.counter_id, program.info.counters):
        counter = _counter(program, counter_id)
        for index in cell_range(_index(request), counter.size, f"counter {counter.name}"):
            packets, octets = counter.read(index)
            message = p4r.CounterEntry(counter_id=counter_id, index=p4r.Index(index=index))
            message.data.packet_count, message.data.byte_count = packets, octets
            yield p4r.Entity(counter_entry=message)


def write_meter(program: Program, kind: int, message: p4r.MeterEntry) -> None:
    """Configure a meter's cell, or all of them without an index; no config is the default one."""
    selection.require_modify(kind, "meter")
    selection.refuse_meter_counters(given=message.HasField("counter_data"))
    described: p4i.Meter = find(program.info.meters, message.meter_id, "meter")
    meter = _meter(program, message.meter_id)
    config = decode_config(message.config, described.spec, f"meter {meter.name}")
    for index in cell_range(_index(message), meter.size, f"meter {meter.name}"):
        meter.cell(index).configure(config)


def read_meters(program: Program, request: p4r.MeterEntry) -> Iterator[p4r.Entity]:
    """Yield a meter's cell, or all of them without an index, or all of all meters with id 0."""
    selection.refuse_meter_counters(given=request.HasField("counter_data"))
    for meter_id in _ids(request.meter_id, program.info.meters):
        meter = _meter(program, meter_id)
        for index in cell_range(_index(request), meter.size, f"meter {meter.name}"):
            message = p4r.MeterEntry(meter_id=meter_id, index=p4r.Index(index=index))
            config = meter.cell(index).config
            if config is not None:
                message.config.CopyFrom(encode_config(config))
            yield p4r.Entity(meter_entry=message)


def write_register(program: Program, kind: int, message: p4r.RegisterEntry) -> None:
    """Set a register's cell, or all of them without an index."""
    selection.require_modify(kind, "register")
    described: p4i.Register = find(program.info.registers, message.register_id, "register")
    register = _register(program, message.register_id)
    where = f"register {register.name}"
    value = decode_scalar(described.type_spec, program.info.types, message.data, where)
    for index in cell_range(_index(message), register.size, where):
        register.write(index, value)


def read_registers(program: Program, request: p4r.RegisterEntry) -> Iterator[p4r.Entity]:
    """Yield a register's cell, or all of them without an index, or all of all registers with id 0."""
    for register_id in _ids(request.register_id, program.info.registers):
        described: p4i.Register = find(program.info.registers, register_id, "register")
        register = _register(program, register_id)
        for index in cell_range(_index(request), register.size, f"register {register.name}"):
            data = encode_data(described.type_spec, program.info.types, iter((register.read(index),)))
            message = p4r.RegisterEntry(register_id=register_id, index=p4r.Index(index=index), data=data)
            yield p4r.Entity(register_entry=message)


def write_value_set(program: Program, kind: int, message: p4r.ValueSetEntry) -> None:
    """Replace a value set's members, which match exactly; UNIMPLEMENTED for any other kind of match."""
    selection.require_modify(kind, "value set")
    described: p4i.ValueSet = find(program.info.value_sets, message.value_set_id, "value set")
    where = f"value set {described.preamble.name}"
    if len(message.members) > described.size:
        raise P4Error(StatusCode.RESOURCE_EXHAUSTED, f"{where} has room for {described.size} members")
    values = {_decode_set_member(described, member, where) for member in message.members}
    program.pipeline.value_sets[described.preamble.name].values = values


def read_value_sets(program: Program, request: p4r.ValueSetEntry) -> Iterator[p4r.Entity]:
    """Yield a value set, or all of them with id 0."""
    for set_id in _ids(request.value_set_id, program.info.value_sets):
        described: p4i.ValueSet = find(program.info.value_sets, set_id, "value set")
        message = p4r.ValueSetEntry(value_set_id=set_id)
        for value in sorted(program.pipeline.value_sets[described.preamble.name].values):
            member = message.members.add()
            rest = value
            for field in reversed(described.match):
                part = p4r.FieldMatch.Exact(value=encode(rest & (1 << field.bitwidth) - 1))
                member.match.insert(0, p4r.FieldMatch(field_id=field.id, exact=part))
                rest >>= field.bitwidth
        yield p4r.Entity(value_set_entry=message)


def _decode_set_member(described: p4i.ValueSet, member: p4r.ValueSetMember, where: str) -> int:
    """Return a member as one number: the whole select key, its fields concatenated."""
    given = {item.field_id: item for item in member.match}
    value = 0
    for field in described.match:
        item = given.pop(field.id, None)
        if item is None:
            raise invalid(f"{where}: field {field.name} is missing")
        if item.WhichOneof("field_match_type") != "exact":
            raise P4Error(StatusCode.UNIMPLEMENTED, f"{where}: only exact matches are possible here")
        value = value << field.bitwidth | decode(item.exact.value, field.bitwidth, f"{where}, {field.name}")
    if given:
        raise invalid(f"{where} has no field with id {min(given)}")
    return value


def _counter(program: Program, counter_id: int) -> externs.Counter:
    return program.pipeline.counters[find(program.info.counters, counter_id, "counter").preamble.name]


def _meter(program: Program, meter_id: int) -> externs.Meter:
    return program.pipeline.meters[find(program.info.meters, meter_id, "meter").preamble.name]


def _register(program: Program, register_id: int) -> externs.Register:
    return program.pipeline.registers[find(program.info.registers, register_id, "register").preamble.name]


def _index(message: p4r.CounterEntry | p4r.MeterEntry | p4r.RegisterEntry) -> int | None:
    return message.index.index if message.HasField("index") else None


def _ids(wanted: int, objects: dict[int, Any]) -> list[int]:
    return [wanted] if wanted else list(objects)
