"""level_control.p4 on a real switch: flow -> group -> level -> queue, bank, guard, slack, bursts.

Times that must not pass within a test are an hour, times that must have passed are a millisecond: nothing
here depends on how fast the machine is.
"""

from __future__ import annotations

import time

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether

from tests.p4src.network import Network, ack, data, dscp, flow_key, ip

HOUR_US = 3_600_000_000
MS_US = 1_000
SOON_S, SOON_US = 0.2, 150_000
"""A pause, and clearly less: for what must have passed while two packets in a row need not be so slow."""


def pause() -> None:
    """Let clearly more than a millisecond go by."""
    time.sleep(0.01)


@pytest.fixture
def net(network: Network) -> Network:
    network.route()
    network.levels()
    return network


def test_unknown_flow_has_the_default_level(net: Network) -> None:
    assert net.level_seen(data()) == 1


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize("udp", [False, True])
def test_known_flow_has_its_groups_level(net: Network, v6: bool, udp: bool) -> None:
    frame = data(v6=v6, udp=udp)
    group, _ = net.flow(frame)
    net.level(group, 5)
    assert net.level_seen(frame) == 5
    assert net.level_seen(data(5002, v6=v6, udp=udp)) == 1


def test_group_without_a_level_has_the_default(net: Network) -> None:
    net.flow(data())
    assert net.level_seen(data()) == 1


def test_flows_of_a_group_share_its_level(net: Network) -> None:
    group, _ = net.flow(data(5001))
    net.flow(data(5002), group)
    net.level(group, 6)
    assert [net.level_seen(data(5001)), net.level_seen(data(5002))] == [6, 6]
    net.relevel(group, 2)
    assert [net.level_seen(data(5001)), net.level_seen(data(5002))] == [2, 2]


def test_bank_flip_re_ranks_all_groups_at_once(net: Network) -> None:
    groups = [net.flow(data(port))[0] for port in (5001, 5002)]
    for group, level in zip(groups, (5, 3), strict=True):
        net.level(group, level, bank=0)
    for group, level in zip(groups, (2, 6), strict=True):
        net.level(group, level, bank=1)
    assert [net.level_seen(data(port)) for port in (5001, 5002)] == [5, 3]
    net.runtime.default("active_bank", "set_bank", bank=1)
    assert [net.level_seen(data(port)) for port in (5001, 5002)] == [2, 6]
    net.runtime.default("active_bank", "set_bank", bank=0)
    assert [net.level_seen(data(port)) for port in (5001, 5002)] == [5, 3]


@pytest.mark.parametrize("tags", [[Dot1Q(vlan=7, prio=3)], [Dot1AD(vlan=9), Dot1Q(vlan=7)]])
@pytest.mark.parametrize("v6", [False, True])
def test_vlan_tags_stay_and_do_not_hide_the_flow(net: Network, tags: list, v6: bool) -> None:
    frame = data(v6=v6)
    group, _ = net.flow(frame)
    net.level(group, 4)
    tagged = Ether(src=frame.src, dst=frame.dst)
    for tag in tags:
        tagged /= tag.copy()
    out = net.through(tagged / frame.payload.copy(), 1, 2)
    assert dscp(out) - 40 == 4
    assert [tag.vlan for tag in (out.getlayer(Dot1AD), out.getlayer(Dot1Q)) if tag] == [t.vlan for t in tags]
    assert bytes(out)[12:14] == bytes(tagged)[12:14]


def test_three_vlan_tags_are_not_ip(net: Network) -> None:
    frame = data()
    net.vanishes(Ether(src=frame.src, dst=frame.dst) / Dot1Q() / Dot1Q() / Dot1Q() / frame.payload)


@pytest.mark.parametrize("v6", [False, True])
def test_roce_queue_pair_before_the_five_tuple(net: Network, v6: bool) -> None:
    def write(qp: int, opcode: int = 0x0A) -> object:
        bth = bytes([opcode, 0, 0xFF, 0xFF, 0]) + qp.to_bytes(3) + bytes(4)
        return ip(v6=v6) / UDP(sport=50000, dport=4791) / (bth + b"x" * 64)

    frame = write(0x1234)
    five_tuple, _ = net.flow(frame)  # what an application with a fixed source port leaves for all its pairs
    net.level(five_tuple, 3)
    header = frame[IPv6] if v6 else frame[IP]
    pair = net.group()
    net.runtime.insert(
        "flow_group_qp_v6" if v6 else "flow_group_qp_v4",
        {"src": header.src, "dst": header.dst, "qp": 0x1234},
        "set_group",
        group=pair,
        slot=70_000 + pair,
    )
    net.level(pair, 6)
    assert net.level_seen(write(0x1234)) == 6
    assert net.level_seen(write(0x4321)) == 3


@pytest.mark.parametrize("words", [1, 10])
def test_ports_are_found_behind_ipv4_options(net: Network, words: int) -> None:
    frame = data()
    group, _ = net.flow(frame)
    net.level(group, 5)
    frame[IP].options = b"\x01" * (4 * words)
    del frame[IP].ihl, frame[IP].len, frame[IP].chksum
    frame = Ether(bytes(frame))
    assert frame[IP].ihl == 5 + words
    out = net.through(frame, 1, 2)
    assert dscp(out) - 40 == 5
    assert bytes(out)[34 : 34 + 4 * words] == b"\x01" * (4 * words)
    assert_checksum(out)


def test_later_fragments_are_a_flow_without_ports(net: Network) -> None:
    group, _ = net.flow(data(udp=True))
    net.level(group, 5)
    net.runtime.insert(
        "flow_group_v4",
        {"src": "10.0.1.1", "dst": "10.0.2.1", "protocol": 17, "sport": 0, "dport": 0},
        "set_group",
        group=(rest := net.group()),
        slot=60_000 + rest,
    )
    net.level(rest, 3)
    first = data(udp=True)
    first[IP].flags = "MF"
    later = ip() / (bytes(data(udp=True)[UDP]))  # bytes that look like the flow's own ports
    later[IP].proto, later[IP].frag = 17, 20
    assert net.level_seen(first) == 5
    assert net.level_seen(later) == 3


def test_ipv6_extension_headers_have_no_ports(net: Network) -> None:
    group, _ = net.flow(data(v6=True))
    net.level(group, 5)
    frame = ip(v6=True)
    frame[IPv6].nh = 0  # hop by hop
    frame = frame / (bytes([6, 0, 1, 4, 0, 0, 0, 0]) + bytes(data(v6=True)[TCP]))
    frame[IPv6].nh = 0
    assert net.level_seen(frame) == 1


def test_flow_counter_counts_packets_and_bytes(net: Network) -> None:
    frame = data()
    net.flow(frame)
    for _ in range(3):
        net.through(frame, 1, 2)
    net.through(ack(), 1, 2)  # of the flow as well: it goes at its level
    table, match = flow_key(frame)
    assert net.runtime.flow_counter(table, match) == (4, 3 * len(frame) + len(ack()))


def test_no_rewrite_leaves_the_dscp(net: Network) -> None:
    net.runtime.modify("level_queue", {"level": 1}, "set_queue", queue=1, dscp=0, rewrite=0)
    assert dscp(net.through(data(dscp=9), 1, 2)) == 9


def test_level_without_a_queue_is_forwarded(net: Network) -> None:
    group, _ = net.flow(data())
    net.level(group, 200)
    assert dscp(net.through(data(dscp=9), 1, 2)) == 9


@pytest.mark.parametrize("v6", [False, True])
def test_rewrite_keeps_ecn_and_the_checksum(net: Network, v6: bool) -> None:
    frame = data(v6=v6, dscp=63)
    if v6:
        frame[IPv6].tc |= 3
    else:
        frame[IP].tos |= 3
    out = net.through(frame, 1, 2)
    assert dscp(out) == 41
    assert (out[IPv6].tc if v6 else out[IP].tos) & 3 == 3
    if not v6:
        assert_checksum(out)


def test_guard_holds_a_promotion_until_a_gap(net: Network) -> None:
    group, _ = net.flow(data())
    net.level(group, 2, guard_us=HOUR_US)
    assert net.level_seen(data()) == 2  # the first packet ever overtakes nobody
    net.relevel(group, 6, guard_us=HOUR_US)
    assert [net.level_seen(data()) for _ in range(3)] == [2, 2, 2]
    net.relevel(group, 6, guard_us=MS_US)
    pause()
    assert net.level_seen(data()) == 6


def test_guard_lets_a_demotion_act_at_once(net: Network) -> None:
    group, _ = net.flow(data())
    net.level(group, 6, guard_us=HOUR_US)
    assert net.level_seen(data()) == 6
    net.relevel(group, 2, guard_us=HOUR_US)
    assert net.level_seen(data()) == 2
    net.relevel(group, 4, guard_us=HOUR_US)  # back up, though not as high as it was: a promotion
    assert net.level_seen(data()) == 2


def test_no_guard_promotes_at_once(net: Network) -> None:
    group, _ = net.flow(data())
    net.level(group, 2)
    assert net.level_seen(data()) == 2
    net.relevel(group, 6)
    assert net.level_seen(data()) == 6


def test_guard_turned_on_under_traffic_knows_where_the_flow_is(net: Network) -> None:
    group, _ = net.flow(data())
    net.level(group, 5)
    assert net.level_seen(data()) == 5
    net.relevel(group, 5, guard_us=HOUR_US)
    assert net.level_seen(data()) == 5
    net.relevel(group, 6, guard_us=HOUR_US)
    assert net.level_seen(data()) == 5


def test_guard_is_per_flow(net: Network) -> None:
    group, _ = net.flow(data(5001))
    net.flow(data(5002), group)
    net.level(group, 2, guard_us=HOUR_US)
    assert net.level_seen(data(5001)) == 2
    net.relevel(group, 6, guard_us=HOUR_US)
    assert net.level_seen(data(5001)) == 2
    assert net.level_seen(data(5002)) == 6  # its first packet


def test_reused_slot_is_held_at_the_old_flows_level_until_a_gap(net: Network) -> None:
    group, slot = net.flow(data(5001))
    net.level(group, 2, guard_us=HOUR_US)
    assert net.level_seen(data(5001)) == 2
    table, match = flow_key(data(5002))
    other = net.group()
    net.runtime.insert(table, match, "set_group", group=other, slot=slot)
    net.level(other, 6, guard_us=HOUR_US)
    assert net.level_seen(data(5002)) == 2
    net.relevel(other, 6, guard_us=MS_US)
    pause()
    assert net.level_seen(data(5002)) == 6


def test_slack_holds_the_start_of_a_burst_at_level_0(net: Network) -> None:
    net.runtime.default("burst_gap", "set_burst_gap", gap_us=0xFFFFFFFF)
    group, _ = net.flow(data())
    net.level(group, 5, slack_us=HOUR_US)
    assert [net.level_seen(data()) for _ in range(3)] == [0, 0, 0]
    net.relevel(group, 5, slack_us=MS_US)
    pause()
    assert net.level_seen(data()) == 5  # the same burst, its slack used up
    net.runtime.default("burst_gap", "set_burst_gap", gap_us=MS_US)
    net.relevel(group, 5, slack_us=HOUR_US)
    pause()
    assert net.level_seen(data()) == 0  # a new burst


def test_guard_holds_the_end_of_the_slack_too(net: Network) -> None:
    net.runtime.default("burst_gap", "set_burst_gap", gap_us=0xFFFFFFFF)
    group, _ = net.flow(data())
    net.level(group, 5, guard_us=HOUR_US, slack_us=HOUR_US)
    assert net.level_seen(data()) == 0
    net.relevel(group, 5, guard_us=HOUR_US, slack_us=MS_US)
    pause()
    assert net.level_seen(data()) == 0
    net.relevel(group, 5, guard_us=MS_US, slack_us=MS_US)
    pause()
    assert net.level_seen(data()) == 5


def test_guard_holds_acks_behind_data_but_data_waits_for_none(net: Network) -> None:
    group, _ = net.flow(data())
    net.level(group, 4, guard_us=HOUR_US)
    assert net.level_seen(data()) == 4
    net.relevel(group, 6, guard_us=HOUR_US)
    assert net.level_seen(ack()) == 4
    net.relevel(group, 2, guard_us=HOUR_US)
    assert net.level_seen(ack()) == 2
    net.relevel(group, 6, guard_us=HOUR_US)
    assert [net.level_seen(ack()), net.level_seen(data())] == [4, 4]
    net.relevel(group, 6, guard_us=SOON_US)
    time.sleep(SOON_S)
    assert [net.level_seen(ack()), net.level_seen(data())] == [6, 6]  # a gap, though an ACK was in it


def test_acks_without_data_before_are_at_the_groups_level(net: Network) -> None:
    group, _ = net.flow(data())
    net.level(group, 2, guard_us=HOUR_US)
    assert net.level_seen(ack()) == 2
    net.relevel(group, 6, guard_us=HOUR_US)
    assert [net.level_seen(ack()), net.level_seen(data())] == [6, 6]


def test_slack_holds_acks_that_begin_none(net: Network) -> None:
    net.runtime.default("burst_gap", "set_burst_gap", gap_us=SOON_US)
    group, _ = net.flow(data())
    net.level(group, 5, slack_us=HOUR_US)
    assert [net.level_seen(data()), net.level_seen(ack())] == [0, 0]
    net.relevel(group, 5, slack_us=SOON_US)
    time.sleep(SOON_S)
    assert net.level_seen(ack()) == 5
    assert net.level_seen(data()) == 0


def test_slack_needs_burst_detection(net: Network) -> None:
    net.runtime.default("burst_gap", "set_burst_gap", gap_us=0)
    group, slot = net.flow(data())
    net.level(group, 5, slack_us=HOUR_US)
    assert net.level_seen(data()) == 5
    assert net.runtime.counter("burst_count", slot)[0] == 0


def test_bursts_are_counted(net: Network) -> None:
    net.runtime.default("burst_gap", "set_burst_gap", gap_us=0xFFFFFFFF)
    _, slot = net.flow(data())
    for _ in range(3):
        net.through(data(), 1, 2)
    assert net.runtime.counter("burst_count", slot)[0] == 1
    net.runtime.default("burst_gap", "set_burst_gap", gap_us=MS_US)
    for count in (2, 3):
        pause()
        net.through(data(), 1, 2)
        assert net.runtime.counter("burst_count", slot)[0] == count


def test_acks_are_no_burst_and_hide_no_gap(net: Network) -> None:
    net.runtime.default("burst_gap", "set_burst_gap", gap_us=SOON_US)
    _, slot = net.flow(data())
    net.through(ack(), 1, 2)
    assert net.runtime.counter("burst_count", slot)[0] == 0
    for count in (1, 2):
        net.through(data(), 1, 2)
        assert net.runtime.counter("burst_count", slot)[0] == count
        time.sleep(SOON_S)
        net.through(ack(), 1, 2)
        assert net.runtime.counter("burst_count", slot)[0] == count


def test_packet_out_leaves_as_it_is(net: Network) -> None:
    net.runtime.packet_out(bytes(data(dscp=9)), egress_port=2, pad=0)
    got = net.lab.wires[2].receive(3)
    assert got == bytes(data(dscp=9))


def assert_checksum(frame: Ether) -> None:
    """Check the IPv4 header checksum against scapy's own."""
    again = frame[IP].copy()
    got = again.chksum
    del again.chksum
    assert got == IP(bytes(again)).chksum
