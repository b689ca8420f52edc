"""Counters, meters, registers and value sets."""

import pytest
from finsy.proto import p4r

from tests.softswitch.p4runtime.helpers import RpcFailedError, delete, insert, modify, octets

INVALID, FULL, OUT_OF_RANGE, UNIMPLEMENTED = 3, 8, 11, 12
FRAME = bytes(60)


def code(client, update):
    with pytest.raises(RpcFailedError) as caught:
        client.write(update)
    return caught.value.codes[0]


def index(number):
    return p4r.Index(index=number)


def test_counters(client, names, service):
    counter = names.id["port_counter"]
    service[1]._process([FRAME] * 3, 5)
    [cell] = client.read(p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=counter, index=index(5))))
    assert (cell.data.packet_count, cell.data.byte_count) == (3, 180)
    data = p4r.CounterData(packet_count=1, byte_count=2)
    client.write(modify(counter_entry=p4r.CounterEntry(counter_id=counter, index=index(0), data=data)))
    cells = client.read(p4r.Entity(counter_entry=p4r.CounterEntry()))
    assert [item.index.index for item in cells] == list(range(16))
    assert [cells[0].data, cells[5].data.packet_count, cells[6].data] == [data, 3, p4r.CounterData()]
    client.write(modify(counter_entry=p4r.CounterEntry(counter_id=counter, data=p4r.CounterData())))
    assert {
        item.data.packet_count
        for item in client.read(p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=counter)))
    } == {0}


def test_cells_and_kinds_of_update_are_checked(client, names):
    counter = names.id["port_counter"]
    assert (
        code(client, modify(counter_entry=p4r.CounterEntry(counter_id=counter, index=index(16))))
        == OUT_OF_RANGE
    )
    assert (
        code(client, modify(counter_entry=p4r.CounterEntry(counter_id=counter, index=index(-1)))) == INVALID
    )
    assert code(client, insert(counter_entry=p4r.CounterEntry(counter_id=counter))) == INVALID
    assert (
        code(client, delete(register_entry=p4r.RegisterEntry(register_id=names.id["port_register"])))
        == INVALID
    )
    assert code(client, modify(counter_entry=p4r.CounterEntry(counter_id=1))) == INVALID
    with pytest.raises(RpcFailedError) as caught:
        client.read(p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=counter, index=index(99))))
    assert caught.value.codes == [OUT_OF_RANGE]


def test_meters(client, names):
    meter = names.id["port_meter"]
    config = p4r.MeterConfig(cir=100, cburst=200, pir=300, pburst=400)
    client.write(modify(meter_entry=p4r.MeterEntry(meter_id=meter, index=index(2), config=config)))
    cells = client.read(p4r.Entity(meter_entry=p4r.MeterEntry(meter_id=meter)))
    assert len(cells) == 16
    assert cells[2].config == config
    assert not cells[1].HasField("config")
    client.write(modify(meter_entry=p4r.MeterEntry(meter_id=meter)))
    assert not any(item.HasField("config") for item in client.read(p4r.Entity(meter_entry=p4r.MeterEntry())))
    counted = p4r.MeterEntry(meter_id=meter, index=index(0))
    counted.counter_data.SetInParent()
    assert code(client, modify(meter_entry=counted)) == UNIMPLEMENTED


def test_registers(client, names, service):
    register = names.id["port_register"]
    service[1]._process([FRAME] * 2, 3)
    [cell] = client.read(p4r.Entity(register_entry=p4r.RegisterEntry(register_id=register, index=index(3))))
    assert cell.data.bitstring == b"\x02"
    data = {"bitstring": b"\x0f\xff"}
    client.write(modify(register_entry=p4r.RegisterEntry(register_id=register, index=index(3), data=data)))
    service[1]._process([FRAME], 3)
    cells = client.read(p4r.Entity(register_entry=p4r.RegisterEntry()))
    assert len(cells) == 16
    assert cells[3].data.bitstring == b"\x00"  # 12 bits: 0xfff + 1
    wide = p4r.RegisterEntry(register_id=register, index=index(3), data={"bitstring": b"\x10\x00"})
    assert code(client, modify(register_entry=wide)) == INVALID
    other = p4r.RegisterEntry(register_id=register, index=index(3), data={"bool": True})
    assert code(client, modify(register_entry=other)) == INVALID


def test_value_sets(client, names, service, stream):
    value_set = names.id["extra_types"]

    def members(*values):
        message = p4r.ValueSetEntry(value_set_id=value_set)
        for value in values:
            message.members.add().match.add(field_id=1, exact=p4r.FieldMatch.Exact(value=octets(value)))
        return message

    client.write(modify(value_set_entry=members(0x86DD, 0x1234)))
    [read] = client.read(p4r.Entity(value_set_entry=p4r.ValueSetEntry()))
    assert read == members(0x1234, 0x86DD)
    assert code(client, modify(value_set_entry=members(1, 2, 3, 4, 5))) == FULL
    assert code(client, insert(value_set_entry=members(1))) == INVALID
    assert code(client, modify(value_set_entry=members(1 << 16))) == INVALID
    ternary = p4r.ValueSetEntry(value_set_id=value_set)
    ternary.members.add().match.add(field_id=1, ternary=p4r.FieldMatch.Ternary(value=b"\1", mask=b"\1"))
    assert code(client, modify(value_set_entry=ternary)) == UNIMPLEMENTED
