"""Direct counters and meters, inside table entries and as entities of their own."""

import pytest
from finsy.proto import p4r
from grpc import StatusCode

from tests.softswitch.p4runtime.helpers import RpcFailedError, delete, insert, modify

DST = 0x02
FRAME = DST.to_bytes(6, "big") + bytes(6) + b"\x12\x34" + bytes(46)
COUNTER = p4r.CounterData()
METER = {"cir": 10, "cburst": 20, "pir": 30, "pburst": 40}


@pytest.fixture
def entry(client, names):
    inserted = names.entry("mac", "forward", args={"port": 1}, match={"dst": DST})
    client.write(insert(table_entry=inserted))
    return inserted


def code(client, update):
    with pytest.raises(RpcFailedError) as caught:
        client.write(update)
    return next(status for status in StatusCode if status.value[0] == caught.value.codes[0])


def test_packets_are_counted_and_told_when_asked_for(client, names, entry, service):
    service[1]._process([FRAME, FRAME], 1)
    request = p4r.TableEntry(table_id=names.id["mac"])
    assert not client.read(p4r.Entity(table_entry=request))[0].HasField("counter_data")
    request.counter_data.SetInParent()
    counted = client.read(p4r.Entity(table_entry=request))[0].counter_data
    assert (counted.packet_count, counted.byte_count) == (2, 2 * len(FRAME))
    direct = p4r.DirectCounterEntry(table_entry=names.entry("mac", match={"dst": DST}))
    [read] = client.read(p4r.Entity(direct_counter_entry=direct))
    assert read.data == counted
    assert read.table_entry == direct.table_entry


def test_counters_are_set(client, names, entry):
    key = names.entry("mac", match={"dst": DST})
    data = p4r.CounterData(packet_count=5, byte_count=6)
    client.write(modify(direct_counter_entry=p4r.DirectCounterEntry(table_entry=key, data=data)))
    everything = p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry(table_entry=p4r.TableEntry()))
    assert [item.data for item in client.read(everything)] == [data]
    client.write(modify(table_entry=entry))  # without counter_data: unchanged
    assert [item.data for item in client.read(everything)] == [data]
    entry.counter_data.packet_count = 1
    client.write(modify(table_entry=entry))
    assert [item.data for item in client.read(everything)] == [entry.counter_data]
    client.write(delete(table_entry=entry), insert(table_entry=entry))
    assert [item.data for item in client.read(everything)] == [entry.counter_data]


def test_a_counter_that_is_not_there(client, names, entry):
    missing = p4r.DirectCounterEntry(table_entry=names.entry("mac", match={"dst": 9}), data=COUNTER)
    assert code(client, modify(direct_counter_entry=missing)) is StatusCode.NOT_FOUND
    assert code(client, insert(direct_counter_entry=missing)) is StatusCode.INVALID_ARGUMENT
    with pytest.raises(RpcFailedError) as caught:
        client.read(p4r.Entity(direct_counter_entry=missing))
    assert caught.value.codes == [StatusCode.NOT_FOUND.value[0]]
    route = names.entry("route", "drop", counter_data=p4r.CounterData(packet_count=1))
    assert code(client, insert(table_entry=route)) is StatusCode.INVALID_ARGUMENT


def test_the_default_entry_has_a_counter_that_can_be_set(client, names):
    counted = names.entry("mac", "drop", is_default_action=True, counter_data=p4r.CounterData(packet_count=1))
    client.write(modify(table_entry=counted))
    default = p4r.TableEntry(table_id=names.id["mac"], is_default_action=True)
    [read] = client.read(p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry(table_entry=default)))
    assert read.data.packet_count == 1
    assert read.table_entry == default


def test_meters(client, names):
    acl = names.entry(
        "acl", "limit", match={"ingress_port": 1}, priority=1, meter_config=p4r.MeterConfig(**METER)
    )
    client.write(insert(table_entry=acl))
    wanted = p4r.TableEntry(table_id=names.id["acl"], meter_config=p4r.MeterConfig())
    assert client.read(p4r.Entity(table_entry=wanted)) == [acl]
    key = names.entry("acl", match={"ingress_port": 1}, priority=1)
    direct = p4r.DirectMeterEntry(table_entry=key, config=p4r.MeterConfig(cir=1, cburst=1, pir=2, pburst=2))
    client.write(modify(direct_meter_entry=direct))
    everything = p4r.Entity(direct_meter_entry=p4r.DirectMeterEntry(table_entry=p4r.TableEntry()))
    assert client.read(everything) == [direct]
    acl.ClearField("meter_config")
    client.write(modify(table_entry=acl))  # without meter_config: back to the default
    assert client.read(everything) == [p4r.DirectMeterEntry(table_entry=key)]


@pytest.mark.parametrize("config", [{"cir": -1}, {**METER, "cir": 99}, {**METER, "eburst": 1}])
def test_meter_configs_are_checked(client, names, config):
    acl = names.entry("acl", "limit", match={"ingress_port": 1}, priority=1)
    client.write(insert(table_entry=acl))
    direct = p4r.DirectMeterEntry(table_entry=acl, config=p4r.MeterConfig(**config))
    assert code(client, modify(direct_meter_entry=direct)) is StatusCode.INVALID_ARGUMENT


def test_per_colour_counters_are_not_kept(client, names):
    acl = names.entry("acl", "limit", match={"ingress_port": 1}, priority=1)
    acl.meter_counter_data.SetInParent()
    assert code(client, insert(table_entry=acl)) is StatusCode.UNIMPLEMENTED
