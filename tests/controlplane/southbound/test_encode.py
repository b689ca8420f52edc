from ipaddress import IPv6Address

import pytest
from finsy import P4Schema
from finsy.proto import p4r

import p4src
from controlplane.southbound.contract import bind
from controlplane.southbound.diff import Change
from controlplane.southbound.encode import MAX_UPDATES, Encoder
from controlplane.southbound.tables import Call

PROGRAM = p4src.program("v1model")
SCHEMA = P4Schema(PROGRAM.p4info, PROGRAM.json)
BINDING = bind(SCHEMA.p4info, "leveller.p4info.txtpb")
SET_LEVEL = Call("set_level", (3, 0, 70000))


@pytest.fixture
def encoder():
    return Encoder(BINDING)


def test_an_update_by_hand(encoder):
    update = encoder.update(Change("group_level", (1, 300), SET_LEVEL, replace=False))
    table = SCHEMA.tables["group_level"]
    assert update == p4r.Update(
        type=p4r.Update.INSERT,
        entity=p4r.Entity(
            table_entry=p4r.TableEntry(
                table_id=table.id,
                match=[
                    p4r.FieldMatch(field_id=1, exact=p4r.FieldMatch.Exact(value=b"\x01")),
                    p4r.FieldMatch(field_id=2, exact=p4r.FieldMatch.Exact(value=b"\x01\x2c")),
                ],
                action=p4r.TableAction(
                    action=p4r.Action(
                        action_id=SCHEMA.actions["set_level"].id,
                        params=[
                            p4r.Action.Param(param_id=1, value=b"\x03"),
                            p4r.Action.Param(param_id=2, value=b"\x00"),
                            p4r.Action.Param(param_id=3, value=b"\x01\x11\x70"),
                        ],
                    )
                ),
            )
        ),
    )


def test_kinds_of_update(encoder):
    assert encoder.update(Change("group_level", (1, 1), SET_LEVEL)).type == p4r.Update.MODIFY
    delete = encoder.update(Change("group_level", (1, 1), None))
    assert delete.type == p4r.Update.DELETE
    assert not delete.entity.table_entry.HasField("action")
    flip = encoder.update(Change("active_bank", (), Call("set_bank", (0,))))
    assert flip.type == p4r.Update.MODIFY
    assert flip.entity.table_entry.is_default_action
    assert flip.entity.table_entry.action.action.params[0].value == b"\x00"


def test_priority_is_never_set_as_no_table_has_ternary_keys(encoder):
    assert (
        encoder.update(Change("ipv4_lpm", ((0x0A000000, 8),), Call("drop"))).entity.table_entry.priority == 0
    )


def test_lpm_is_masked_and_dont_care_left_out(encoder):
    entry = encoder.update(Change("ipv4_lpm", ((0x0A0102FF, 24),), Call("drop"))).entity.table_entry
    assert entry.match[0].lpm == p4r.FieldMatch.LPM(value=b"\x0a\x01\x02\x00", prefix_len=24)
    assert not encoder.update(Change("ipv4_lpm", ((0, 0),), Call("drop"))).entity.table_entry.match


@pytest.mark.parametrize(
    "change",
    [
        Change("group_level", (1, 65535), Call("set_level", (255, 0, 2**32 - 1))),
        Change(
            "flow_group_v6", (int(IPv6Address("fd00::1")), 0, 6, 0, 65535), Call("set_group", (1, 2**32 - 1))
        ),
        Change("flow_group_qp_v4", (1, 2, 0xABCDEF), Call("set_group", (1, 2))),
        Change("ipv6_lpm", ((0xFD00 << 112, 16),), Call("set_ecmp", (1, 2))),
        Change("ipv4_lpm", ((0, 0),), Call("set_nhop", (3, 0x020000000003))),
        Change("edge_port", (5,), Call("fabric_facing")),
        Change("active_bank", (), Call("set_bank", (1,))),
    ],
)
def test_what_is_written_reads_back_the_same_padded_or_not(encoder, change):
    entry = p4r.TableEntry()
    entry.CopyFrom(encoder.update(change).entity.table_entry)
    assert encoder.decode(entry) == (change.table, change.key, change.call)
    for match in entry.match:
        kind = match.exact if match.HasField("exact") else match.lpm
        kind.value = kind.value.rjust(16, b"\x00")
    for param in entry.action.action.params:
        param.value = param.value.rjust(8, b"\x00")
    entry.action.action.params.sort(key=lambda param: -param.param_id)
    entry.match.sort(key=lambda match: -match.field_id)
    assert encoder.decode(entry) == (change.table, change.key, change.call)


def test_a_foreign_action_or_table_read_back(encoder):
    entry = encoder.update(Change("edge_port", (5,), Call("fabric_facing"))).entity.table_entry
    foreign = p4r.TableEntry()
    foreign.CopyFrom(entry)
    foreign.action.action.action_id = 99
    assert encoder.decode(foreign) == ("edge_port", (5,), Call("action 99"))
    foreign.table_id = 99
    assert encoder.decode(foreign) is None


def test_reading_back_asks_for_every_table_and_the_defaults_of_those_without_key(encoder):
    asked = {
        entity.table_entry.table_id: entity.table_entry.is_default_action for entity in encoder.read_all()
    }
    assert asked.keys() == {table.id for table in BINDING.values()}
    assert {name for name, table in BINDING.items() if asked[table.id]} == {
        "active_bank",
        "default_level",
        "burst_gap",
        "ecmp_seed",
        "int_node",
    }


def test_the_largest_write_stays_far_below_four_megabytes(encoder):
    widest = 2**128 - 1
    updates = [
        encoder.update(
            Change(
                "flow_group_v6", (widest, widest, 255, 65535, number), Call("set_group", (65535, 2**32 - 1))
            )
        )
        for number in range(65535, 65535 - MAX_UPDATES, -1)
    ]
    assert len(set(map(p4r.Update.SerializeToString, updates))) == MAX_UPDATES
    assert p4r.WriteRequest(updates=updates).ByteSize() < 200_000


def test_encoded_updates_put_together_are_a_write_request(encoder):
    changes = [
        Change("group_level", (1, 1), SET_LEVEL),
        Change("group_level", (0, 2), None),
        Change("active_bank", (), Call("set_bank", (1,))),
    ]
    head = p4r.WriteRequest(device_id=7, election_id=p4r.Uint128(high=1, low=2))
    joined = head.SerializeToString() + b"".join(map(encoder.encoded, changes))
    head.updates.extend(map(encoder.update, changes))
    assert p4r.WriteRequest.FromString(joined) == head


def test_encoded_updates_are_kept(encoder):
    change = Change("group_level", (1, 1), SET_LEVEL)
    assert encoder.encoded(change) is encoder.encoded(
        Change("group_level", (1, 1), Call("set_level", (3, 0, 70000)))
    )
