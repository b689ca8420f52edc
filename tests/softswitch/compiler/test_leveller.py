"""The switch program itself: what it does with real packets. (Beside bmv2: tests/softswitch/golden.)"""

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

ROUTER, HOST, NEXT = "02:00:00:00:aa:aa", "02:00:00:00:01:01", 0x020000000002
INT_DSCP = 0x17


def filled(switch):
    switch.insert("edge_port", [1], "host_facing")
    switch.insert("edge_port", [2], "fabric_facing")
    for port in (2, 3, 4):
        switch.insert("int_sink", [port], "relay")
    switch.insert("ipv4_lpm", [(0x0A000200, 24)], "set_nhop", 2, NEXT)
    switch.insert("ipv4_lpm", [(0x0A000300, 24)], "set_ecmp", 1, 2)
    switch.insert("ipv4_lpm", [(0x0A000400, 24)], "set_nhop", 5, NEXT)
    switch.insert("ipv6_lpm", [(0xFD00 << 112, 16)], "set_nhop", 2, NEXT)
    switch.set_default("ecmp_seed", "set_seed", 12345)
    for member in range(2):
        switch.insert("ecmp", [1, member], "set_nhop", 3 + member, NEXT + member)
    for level in range(8):
        switch.insert("level_queue", [level], "set_queue", level, 8 + level, level % 2)
    for group in range(7):
        switch.insert(
            "flow_group_v4", [0x0A000101, 0x0A000201, 6, 5000 + group, 80], "set_group", group, group
        )
        switch.insert("group_level", [0, group], "set_level", group, 0, 0)
        switch.insert("group_level", [1, group], "set_level", 6 - group, 0, 0)
    switch.set_default("int_node", "set_int_node", 77)
    return switch


def tcp(sport=5003, dst="10.0.2.1", payload=b"x" * 100, **ip):
    return bytes(
        Ether(src=HOST, dst=ROUTER)
        / IP(src="10.0.1.1", dst=dst, **ip)
        / TCP(sport=sport, dport=80, flags="PA")
        / Raw(payload)
    )


@pytest.fixture
def switch(ours):
    return filled(ours("leveller"))


def test_a_known_flow_takes_its_groups_queue_and_a_bank_flip_changes_it(switch):
    assert [switch.send(tcp(5000 + g))[0][1] for g in range(7)] == [0, 1, 2, 3, 4, 5, 6]
    switch.set_default("active_bank", "set_bank", 1)
    assert [switch.send(tcp(5000 + g))[0][1] for g in range(7)] == [6, 5, 4, 3, 2, 1, 0]


def test_a_routed_packet_is_rewritten_and_its_checksum_right(switch):
    ((port, data),) = switch.ports(tcp(5003, ttl=9))
    out = Ether(data)
    assert (port, out.dst, out.src, out[IP].ttl) == (2, "02:00:00:00:00:02", ROUTER, 8)
    given = out[IP].chksum
    del out[IP].chksum
    assert IP(bytes(out[IP])).chksum == given
    assert out[IP].tos >> 2 == 11  # level 3 rewrites the DSCP
    assert bytes(out[TCP]) == tcp(5003)[34:]


def test_a_packet_out_leaves_where_it_says_without_its_header(switch):
    frame = bytes(Ether(src=HOST, dst=ROUTER, type=0x1234) / Raw(b"hello"))
    assert switch.ports((6 << 7).to_bytes(2, "big") + frame, port=510) == [(6, frame)]


def probe(dst="10.0.2.1", hops=8):
    """A fresh INT probe of a TCP flow, asking for node ids and level 1 ports."""
    shim = bytes([1 << 4, 3, 0, 0])
    metadata = (2 << 20 | 1 << 19 | 2).to_bytes(3, "big") + bytes([hops]) + b"\xc0\0" + bytes(6)
    return tcp(dst=dst, payload=shim + metadata, tos=INT_DSCP << 2)


def test_a_probe_gets_this_hop_on_top(switch):
    ((port, data),) = switch.ports(probe())
    stack = data[14 + 20 + 20 :]
    assert port == 2
    assert stack[1] == 5  # the shim's length in words: three and this hop's two
    assert stack[4 + 3] == 7  # hops that remain
    assert stack[16:24] == (77).to_bytes(4, "big") + (1).to_bytes(2, "big") + (2).to_bytes(2, "big")
    assert IP(data[14:]).len == len(data) - 14


def test_a_probe_may_ask_for_the_queues_depth(switch):
    asked = []
    switch.pipeline.queue_depth = lambda port, queue: asked.append((port, queue)) or 1234
    one_word = bytearray(probe())
    one_word[54 + 4 + 2] = 1  # words a hop adds
    one_word[54 + 8 : 54 + 10] = b"\x10\0"
    ((_, data),) = switch.ports(bytes(one_word))
    assert asked == [(2, 7)]
    assert data[54 + 16 : 54 + 20] == b"\7" + (1234).to_bytes(3, "big")
    switch.ports(tcp())
    assert len(asked) == 1  # a packet that does not ask costs nothing


def test_a_sunk_probe_goes_to_the_controller(switch):
    ((port, data),) = switch.ports(probe(dst="10.0.4.1"))
    assert port == 510
    header = int.from_bytes(data[:3], "big")
    assert (header >> 15, header >> 6 & 511, header & 63) == (1, 5, 1)
    assert data[3 + 54 + 16 :][:8] == (77).to_bytes(4, "big") + b"\0\1\0\5"
