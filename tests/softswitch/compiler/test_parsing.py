import random

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

MAC = bytes.fromhex("020000000001020000000002")


def label(value, *, bottom, ttl=9):
    return (value << 12 | bottom << 8 | ttl).to_bytes(4, "big")


def ipv4(options=b"", ttl=64):
    return bytes(IP(src="10.0.0.1", dst="10.0.0.2", ttl=ttl, ihl=5 + len(options) // 4, options=[])) + options


def report(switch, packet, port=1):
    ((out, data),) = switch.ports(packet, port)
    assert out == 5
    error, labels, seen = data[0], data[1], int.from_bytes(data[2:4], "big")
    return {"error": error, "labels": labels, "seen": seen, "rest": data[4:]}


def test_a_stack_is_filled_in_a_loop_and_lookahead_sees_what_follows(ours):
    packet = (
        MAC + b"\x88\x47" + label(1, bottom=0) + label(2, bottom=0) + label(3, bottom=1) + ipv4() + b"data"
    )
    assert report(ours("parse"), packet) == {
        "error": 0,
        "labels": 0b111,
        "seen": 3,
        "rest": packet[:14] + packet[14:26] + ipv4(ttl=63)[:10] + ipv4()[10:] + b"data",
    }


def test_a_full_stack_is_an_error_and_keeps_what_was_parsed(ours):
    packet = MAC + b"\x88\x47" + b"".join(label(n, bottom=0) for n in range(5))
    assert report(ours("parse"), packet) == {"error": 3, "labels": 0b111, "seen": 3, "rest": packet}


def test_a_short_packet_is_an_error_and_keeps_what_was_parsed(ours):
    switch = ours("parse")
    packet = MAC + b"\x08\x00" + ipv4()[:13]
    assert report(switch, packet) == {"error": 1, "labels": 0, "seen": 0, "rest": packet}
    assert report(switch, MAC) == {"error": 1, "labels": 0, "seen": 0, "rest": MAC}
    assert report(switch, b"") == {"error": 1, "labels": 0, "seen": 0, "rest": b""}


@pytest.mark.parametrize("words", [0, 1, 5, 10])
def test_options_are_a_varbit_field(ours, words):
    packet = MAC + b"\x08\x00" + ipv4(bytes(range(4 * words))) + b"payload"
    expected = bytearray(packet)
    expected[22] = 63
    assert report(ours("parse"), packet)["rest"] == bytes(expected)


def test_verify_raises_the_programs_own_error(ours):
    packet = MAC + b"\x08\x00" + b"\x65" + ipv4()[1:]
    assert report(ours("parse"), packet) == {"error": 100, "labels": 0, "seen": 0, "rest": packet}


def test_advance_skips_bytes_and_leaves_them_out(ours):
    switch = ours("parse")
    packet = MAC + b"\x90\x55" + b"\x03" + b"abcdef"
    assert report(switch, packet)["rest"] == packet[:15] + b"def"
    short = MAC + b"\x90\x55" + b"\x09" + b"abcdef"
    assert report(switch, short) == {"error": 1, "labels": 0, "seen": 0, "rest": short}


def test_a_value_set_takes_what_the_control_plane_puts_in(ours):
    switch = ours("parse")
    packet = MAC + b"\x12\x34"
    assert report(switch, packet)["seen"] == 0
    (special,) = switch.pipeline.value_sets.values()
    special.values.add(0x1234)
    assert report(switch, packet)["seen"] == 0xBEEF


def test_pop_and_push_shift_the_stack(ours):
    switch = ours("parse")
    stack = label(1, bottom=0) + label(2, bottom=1)
    packet = MAC + b"\x88\x47" + stack + ipv4()
    tail = ipv4(ttl=63)[:10] + ipv4()[10:]
    assert report(switch, packet, port=2)["rest"] == packet[:14] + label(2, bottom=1, ttl=8) + tail
    pushed = label(0xABCDE, bottom=0, ttl=64)
    assert report(switch, packet, port=3)["rest"] == packet[:14] + pushed + stack + tail
    full = MAC + b"\x88\x47" + label(1, bottom=0) + label(2, bottom=0) + label(3, bottom=1) + ipv4()
    assert report(switch, full, port=3)["rest"] == full[:14] + pushed + full[14:22] + tail


def test_a_packet_may_be_a_view_and_is_not_changed(ours):
    switch = ours("parse")
    packet = MAC + b"\x08\x00" + ipv4() + b"x"
    buffer = bytearray(packet)
    assert report(switch, memoryview(buffer)) == report(switch, packet)
    assert buffer == packet


def test_random_packets_parse_as_in_bmv2(both):
    switch, bmv2 = both("parse")
    generator = random.Random(2)
    valid = bytes(Ether() / IP() / UDP(sport=1, dport=2))
    for i in range(40):
        kind = generator.choice([b"\x88\x47", b"\x08\x00", b"\x90\x01", b"\x77\x77"])
        body = b"".join(
            label(generator.getrandbits(20), bottom=generator.random() < 0.3) for _ in range(i % 4)
        )
        if kind == b"\x08\x00":
            body = bytes([generator.choice([0x45, 0x46, 0x4F, 0x55])])
        packet = MAC + kind + body + valid[14:] + generator.randbytes(generator.randrange(60))
        packet = packet[: generator.randrange(60, 100)]
        port = generator.choice([1, 2, 3])
        expected = switch.ports(packet, port)
        assert bmv2.ports(packet, port, len(expected)) == expected, packet.hex()
