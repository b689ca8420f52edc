"""RECONCILE_AND_COMMIT between two programs: what is carried over, what is left behind, what is refused."""

import pytest
from finsy.proto import p4r

from softswitch.externs import MeterConfig
from softswitch.p4runtime import entities, roles
from softswitch.p4runtime.program import realize
from softswitch.p4runtime.reconcile import carry_over
from tests.softswitch.p4runtime.helpers import CPU_PORT, insert, load, modify, refusal


def write(program, *updates):
    for update in updates:
        entities.write(program, update, roles.FULL, now_us=0, cpu_port=CPU_PORT)


def read(program, **entity):
    found = entities.read(program, p4r.Entity(**entity), roles.FULL, 0)
    return [getattr(item, item.WhichOneof("entity")) for item in found]


def table(program, names, name, **fields):
    return read(program, table_entry=p4r.TableEntry(table_id=names.id[name], **fields))


def carry(old, new):
    carry_over(old, new, now_us=0, cpu_port=CPU_PORT)


@pytest.fixture
def changed():
    """Return a function that realizes features.p4 after ``change`` has had its P4Info."""

    def make(change):
        config = load("features")
        change({item.preamble.alias: item for item in config.p4info.tables}, config.p4info)
        return realize(config, queues=8)

    return make


@pytest.fixture
def same(features):
    return realize(features, queues=8)


def test_entries_are_kept_with_all_they_have(program, same, names):
    entry = names.entry(
        "mac",
        "prioritise",
        args={"port": 257, "queue": 7},
        match={"dst": 1},
        metadata=b"m",
        controller_metadata=9,
        idle_timeout_ns=10**12,
        counter_data=p4r.CounterData(packet_count=3, byte_count=180),
    )
    limited = names.entry(
        "acl",
        "limit",
        match={"ingress_port": 1, "src": ("ternary", {"value": 1, "mask": 3})},
        priority=5,
        meter_config=p4r.MeterConfig(cir=1, cburst=2, pir=3, pburst=4),
    )
    write(program, insert(table_entry=entry), insert(table_entry=limited))
    carry(program, same)
    assert table(same, names, "mac", counter_data=p4r.CounterData()) == [entry]
    kept = table(same, names, "acl", meter_config=p4r.MeterConfig())
    for one in [*kept, limited]:
        one.match.sort(key=lambda item: item.field_id)
    assert kept == [limited]


def test_the_programs_own_entries_are_not_written_again(program, same, names):
    carry(program, same)
    fixed = table(same, names, "fixed")
    assert [(item.match[0].exact.value, item.is_const) for item in fixed] == [
        (b"\x88\xcc", True),
        (b"\x88\xcd", True),
    ]


def test_members_groups_and_the_entries_that_use_them(program, same, names):
    spreader = names.id["spreader"]
    member = p4r.ActionProfileMember(
        action_profile_id=spreader, member_id=4, action=names.action("forward", port=2)
    )
    group = p4r.ActionProfileGroup(action_profile_id=spreader, group_id=6, max_size=8)
    group.members.add(member_id=4, weight=3, watch_port=b"\x02")
    entry = names.entry("spread", match={"dst": 1})
    entry.action.action_profile_group_id = 6
    write(
        program,
        insert(action_profile_member=member),
        insert(action_profile_group=group),
        insert(table_entry=entry),
    )
    carry(program, same)
    assert read(same, action_profile_member=p4r.ActionProfileMember()) == [member]
    assert read(same, action_profile_group=p4r.ActionProfileGroup()) == [group]
    assert table(same, names, "spread") == [entry]


def test_replication_and_digests(program, same, names):
    multicast = p4r.MulticastGroupEntry(multicast_group_id=7)
    multicast.replicas.add(port=b"\x02", instance=1)
    session = p4r.CloneSessionEntry(session_id=3, packet_length_bytes=64)
    session.replicas.add(port=b"\x04", instance=1)
    digest = p4r.DigestEntry(digest_id=names.id["learn_t"])
    digest.config.max_list_size = 5
    entry, engine = "packet_replication_engine_entry", p4r.PacketReplicationEngineEntry
    write(
        program,
        insert(**{entry: engine(multicast_group_entry=multicast)}),
        insert(**{entry: engine(clone_session_entry=session)}),
        insert(digest_entry=digest),
    )
    carry(program, same)
    groups = read(same, **{entry: engine(multicast_group_entry=p4r.MulticastGroupEntry())})
    sessions = read(same, **{entry: engine(clone_session_entry=p4r.CloneSessionEntry())})
    assert [item.multicast_group_entry for item in groups] == [multicast]
    assert [item.clone_session_entry for item in sessions] == [session]
    assert read(same, digest_entry=p4r.DigestEntry()) == [digest]


def test_the_default_entry_keeps_action_metadata_and_counter(program, same, names):
    default = names.entry(
        "mac",
        "flood",
        args={"group": 9},
        is_default_action=True,
        metadata=b"d",
        counter_data=p4r.CounterData(packet_count=2, byte_count=120),
    )
    write(program, modify(table_entry=default))
    carry(program, same)
    request = {"is_default_action": True, "counter_data": p4r.CounterData()}
    assert table(same, names, "mac", **request) == [default]


def test_a_default_entry_with_the_programs_action_keeps_the_rest_too(program, same, names):
    default = names.entry(
        "mac",
        "drop",
        is_default_action=True,
        metadata=b"d",
        counter_data=p4r.CounterData(packet_count=2, byte_count=120),
    )
    write(program, modify(table_entry=default))
    carry(program, same)
    request = {"is_default_action": True, "counter_data": p4r.CounterData()}
    assert table(same, names, "mac", **request) == [default]


def test_cells_are_copied_into_the_lists_the_code_has_bound(program, same):
    counter, register = (
        same.pipeline.counters["ingress.port_counter"],
        same.pipeline.registers["ingress.port_register"],
    )
    packets, cells = counter.packets, register.cells
    program.pipeline.counters["ingress.port_counter"].write(3, 4, 400)
    program.pipeline.registers["ingress.port_register"].write(15, 0xFFF)
    program.pipeline.meters["ingress.port_meter"].cell(2).configure(MeterConfig(1, 2, 3, 4))
    program.pipeline.value_sets["p.extra_types"].values = {0x86DD}
    carry(program, same)
    assert counter.read(3) == (4, 400)
    assert counter.read(2) == (0, 0)
    assert register.read(15) == 0xFFF
    assert counter.packets is packets
    assert register.cells is cells
    meter = same.pipeline.meters["ingress.port_meter"]
    assert [meter.cell(i).config for i in (1, 2)] == [None, MeterConfig(1, 2, 3, 4)]
    assert same.pipeline.value_sets["p.extra_types"].values == {0x86DD}


def test_cells_of_another_shape_start_anew(program, features):
    config = p4r.ForwardingPipelineConfig.FromString(features.SerializeToString())
    config.p4_device_config = config.p4_device_config.replace(b'"bitwidth" : 12', b'"bitwidth" : 13')
    new = realize(config, queues=8)
    assert new.pipeline.registers["ingress.port_register"].width == 13
    program.pipeline.registers["ingress.port_register"].write(1, 7)
    program.pipeline.counters["ingress.port_counter"].write(1, 7, 700)
    carry(program, new)
    assert new.pipeline.registers["ingress.port_register"].read(1) == 0
    assert new.pipeline.counters["ingress.port_counter"].read(1) == (7, 700)


def test_a_table_the_new_program_lacks_is_left_behind(program, changed, names):
    write(
        program,
        insert(table_entry=names.entry("mac", "forward", args={"port": 1}, match={"dst": 1})),
        insert(table_entry=names.entry("source", "learn", match={"src": 1})),
    )
    new = changed(lambda tables, info: info.tables.remove(tables["mac"]))
    carry(program, new)
    assert [item.table_id for item in read(new, table_entry=p4r.TableEntry())] == [
        names.id["source"],
        *[names.id["fixed"]] * 2,
    ]


def test_an_entry_the_new_table_cannot_take_is_named(program, changed, names):
    entry = names.entry("mac", "flood", args={"group": 9}, match={"dst": 1})
    write(program, insert(table_entry=entry))

    def without_flood(tables, info):
        refs = tables["mac"].action_refs
        refs.remove(next(ref for ref in refs if ref.id == names.id["flood"]))

    assert refusal(carry, program, changed(without_flood)) == (
        "INVALID_ARGUMENT",
        "the state cannot be kept: table_entry: table ingress.mac has no action ingress.flood",
    )
