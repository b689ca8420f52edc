import struct

import pytest

from softswitch.action_profiles import GroupMember
from softswitch.entries import GroupRef, MemberRef, OneShot
from softswitch.externs import GREEN, RED, YELLOW, MeterConfig
from softswitch.hashes import ALGORITHMS
from softswitch.pipeline import ProgramError

DATA = struct.Struct("!BBHIBBHIH")


def run(switch, flow=1, group=0, entropy=0, value=0):
    names = ("flow", "group", "entropy", "value", "color", "direct_color", "chosen", "old", "number")
    ((port, data),) = switch.ports(DATA.pack(flow, group, entropy, value, 0, 0, 0, 0, 0) + b"0123456789")
    assert port == 1
    return dict(zip(names, DATA.unpack_from(data), strict=True))


@pytest.fixture
def switch(ours):
    return ours("state")


def test_counters_count_packets_and_bytes_within_bounds(switch):
    for flow in (3, 3, 200):
        run(switch, flow)
    (counter,) = switch.pipeline.counters.values()
    assert counter.read(3) == (2, 2 * (DATA.size + 10))
    assert sum(counter.packets) == 2


def test_direct_counters_count_hits_only(switch):
    entry = switch.insert("flows", [3], "seen", 9)
    assert run(switch, 3)["group"] == 9
    run(switch, 4)
    assert (entry.packets, entry.bytes) == (1, DATA.size + 10)
    assert entry.last_hit_us == switch.now - 10


def test_registers_are_read_and_written_within_bounds(switch):
    assert run(switch, 5, value=2**32 - 1)["old"] == 0
    assert run(switch, 5, value=3)["old"] == 2**32 - 1
    assert run(switch, 5)["old"] == 2
    assert run(switch, 99, value=5)["old"] == 0
    (register,) = switch.pipeline.registers.values()
    register.write(5, 77)
    assert run(switch, 5)["old"] == 77


def test_an_indirect_meter_colors(switch):
    (meter,) = switch.pipeline.meters.values()
    meter.cell(2).configure(MeterConfig(cir=1, cburst=2, pir=1, pburst=3))
    assert [run(switch, 2)["color"] for _ in range(4)] == [GREEN, GREEN, YELLOW, RED]
    assert run(switch, 1)["color"] == GREEN


def test_a_direct_meter_colors_hits(switch):
    entry = switch.insert("flows", [3], "seen", 0)
    size = DATA.size + 10
    entry.meter.configure(MeterConfig(cir=1, cburst=size, pir=1, pburst=2 * size))
    assert [run(switch, 3)["direct_color"] for _ in range(3)] == [GREEN, YELLOW, RED]


def test_an_action_profile_shares_members(switch):
    profile = switch.pipeline.action_profiles["MyIngress.shared_actions"]
    profile.insert_member(1, switch.action("profiled", "choose", 11))
    for flow in (1, 2):
        switch.table("profiled").insert([flow], MemberRef(1))
    assert [run(switch, flow)["chosen"] for flow in (1, 2, 3)] == [11, 11, 0]
    profile.modify_member(1, switch.action("profiled", "also", 22))
    assert [run(switch, flow)["chosen"] for flow in (1, 2, 3)] == [1022, 1022, 0]


def test_a_selector_chooses_by_hash(switch):
    spread = switch.pipeline.action_profiles["MyIngress.spread"]
    for member in (1, 2, 3):
        spread.insert_member(member, switch.action("selected", "choose", member))
    spread.insert_group(1, [GroupMember(1), GroupMember(2, weight=2)])
    switch.table("selected").insert([7], GroupRef(1))
    switch.table("selected").insert([8], MemberRef(3))
    crc16 = ALGORITHMS["crc16"][0]
    for entropy in range(20):
        expected = [1, 2, 2][crc16(entropy.to_bytes(2, "big")) % 3]
        assert run(switch, group=7, entropy=entropy)["chosen"] == expected
    assert run(switch, group=8)["chosen"] == 3
    spread.modify_group(1, [])
    assert run(switch, group=7)["chosen"] == 0


def test_registers_and_selectors_do_as_in_bmv2(both):
    switch, bmv2 = both("state")
    for member in range(1, 6):
        switch.profile("spread").insert_member(member, switch.action("selected", "choose", member))
        bmv2.member("spread", member, "choose", member)
    switch.profile("spread").insert_group(1, [GroupMember(m) for m in range(1, 6)])
    bmv2.group("spread", 1, range(1, 6))
    switch.table("selected").insert([7], GroupRef(1))
    switch.table("selected").insert([8], MemberRef(4))
    bmv2.insert("selected", [7], GroupRef(1))
    bmv2.insert("selected", [8], MemberRef(4))
    for entropy in range(40):
        packet = DATA.pack(entropy % 3, 7 + entropy % 2, entropy * 77, entropy, 0, 0, 0, 0, 0)
        ((port, ours),), ((other, theirs),) = switch.ports(packet), bmv2.ports(packet, 1, 1)
        assert port == other
        assert ours[:-2] == theirs[:-2]  # the last field is random


def test_a_one_shot_group(switch):
    first, second = switch.action("selected", "choose", 5), switch.action("selected", "also", 5)
    switch.table("selected").insert([7], OneShot(((first, 1, b""), (second, 1, b"\2"))))
    seen = {run(switch, group=7, entropy=n)["chosen"] for n in range(30)}
    assert seen == {5, 1005}
    switch.pipeline.action_profiles["MyIngress.spread"].set_ports_down([2])
    assert {run(switch, group=7, entropy=n)["chosen"] for n in range(30)} == {5}


def test_random_stays_in_its_range(switch):
    assert {run(switch)["number"] for _ in range(200)} == {100, 101, 102, 103}


def test_log_msg_logs(switch, caplog):
    caplog.set_level("INFO")
    run(switch, 6, value=1)
    run(switch, 6)
    assert [r.getMessage() for r in caplog.records] == ["flow 6 has 0", "flow 6 has 1"]


def test_a_failed_assert_names_its_place(switch):
    with pytest.raises(ProgramError, match=r"assert failed \(state.p4 line \d+\)"):
        run(switch, 255)
    assert run(switch, 1)["flow"] == 1


def test_a_union_has_one_valid_member_at_most(ours):
    switch = ours("unions")  # kind and what to do; reported: which member is valid, and its value
    parsed_twice = switch.ports(bytes.fromhex("0200 ff 010203 0405"))
    assert parsed_twice == [(2, bytes.fromhex("0001 0102 0200 010303 0405"))]
    made_valid = switch.ports(bytes.fromhex("0102 aabbcc 07"))
    assert made_valid == [(2, bytes.fromhex("0100 0099 0102 99 07"))]
