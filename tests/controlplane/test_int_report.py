"""Probes are built here with struct alone, from the INT 2.1 text; scapy reads the same bytes as a check."""

import contextlib
import struct
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether

from controlplane.int_report import Hop, Reason, ReportError, parse
from controlplane.model import FiveTuple

DSCP = 0x17
ALL = 0xFF80  # instruction bits 0 to 8
MACS = bytes.fromhex("020000000001020000000002")


def ethernet(ethertype, vlans=()):
    tags = b"".join(
        struct.pack("!HH", 0x88A8 if n < len(vlans) - 1 else 0x8100, v) for n, v in enumerate(vlans)
    )
    return MACS + tags + struct.pack("!H", ethertype)


def shim_header(
    stack=b"",
    hop_words=0,
    instructions=0,
    *,
    kind=1,
    words=None,
    version=2,
    flags=0x800,
    remaining=8,
    domain=0,
    ds=0,
):
    words = 3 + len(stack) // 4 if words is None else words
    shim = struct.pack("!BBH", kind << 4, words, DSCP << 10)
    return shim + struct.pack(
        "!HBBHHHH", version << 12 | flags, hop_words, remaining, instructions, domain, ds, 0
    )


def ipv4(payload, protocol=6, dscp=DSCP, options=b"", fragment=0, source="10.0.1.1", destination="10.0.2.2"):
    size = 20 + len(options)
    return (
        struct.pack(
            "!BBHHHBBH", 0x40 | size // 4, dscp << 2 | 1, size + len(payload), 7, fragment, 64, protocol, 0
        )
        + ip_address(source).packed
        + ip_address(destination).packed
        + options
        + payload
    )


def ipv6(payload, protocol=6, dscp=DSCP, source="fd00:1::1", destination="fd00:2::2"):
    first = 6 << 28 | dscp << 22
    return (
        struct.pack("!IHBB", first, len(payload), protocol, 64)
        + ip_address(source).packed
        + ip_address(destination).packed
        + payload
    )


def tcp(payload, sport=41000, dport=29500):
    return struct.pack("!HHIIBBHHH", sport, dport, 1, 2, 0x50, 0x10, 512, 0, 0) + payload


def udp(payload, sport=41000, dport=4791):
    return struct.pack("!HHHH", sport, dport, 8 + len(payload), 0) + payload


def hop_all(node, ingress, egress):
    """One hop's metadata for instructions ``ALL``: 12 words."""
    return struct.pack(
        "!IHHIIQQIIII", node, ingress, egress, 900 + node, 3 << 24 | 17, 10**12 + node, 10**12 + node + 900,
        50 + ingress, 50 + egress, 77, 2 << 24 | 5,
    )  # fmt: skip


def hop_ports(node, ingress, egress):
    """One hop's metadata for instructions 0xC000."""
    return struct.pack("!IHH", node, ingress, egress)


STACK = hop_ports(12, 3, 1) + hop_ports(21, 1, 2) + hop_ports(11, 1, 3)  # newest first
INT = shim_header(STACK, 2, 0xC000) + STACK
PROBE = ethernet(0x0800) + ipv4(tcp(INT))
FLOW = FiveTuple(IPv4Address("10.0.1.1"), IPv4Address("10.0.2.2"), 6, 41000, 29500)


def reason(packet):
    with pytest.raises(ReportError) as error:
        parse(packet, DSCP)
    assert str(error.value).startswith(error.value.reason)
    return error.value.reason


def test_hops_come_in_the_order_the_packet_took():
    report = parse(PROBE, DSCP)
    assert report.flow == FLOW
    assert [(hop.node_id, hop.ingress_port, hop.egress_port) for hop in report.hops] == [
        (11, 1, 3),
        (21, 1, 2),
        (12, 3, 1),
    ]
    assert (report.hops_exceeded, report.mtu_exceeded, report.remaining_hops, report.domain) == (
        False,
        False,
        8,
        0,
    )


def test_every_instruction_bit_is_found_in_its_place():
    stack = hop_all(2, 3, 4)
    report = parse(ethernet(0x0800) + ipv4(tcp(shim_header(stack, 12, ALL) + stack)), DSCP)
    assert report.hops == (Hop(2, 3, 4, 902, 3, 17, 10**12 + 2, 10**12 + 902),)


def test_what_a_hop_cannot_tell_is_none():
    stack = struct.pack("!IHHI", 5, 0xFFFF, 7, 0xFFFFFFFF)
    report = parse(ethernet(0x0800) + ipv4(tcp(shim_header(stack, 3, 0xD000) + stack)), DSCP)
    assert report.hops == (Hop(node_id=5, egress_port=7),)


def test_ipv6_udp_vlans_and_ip_options():
    udp6 = ethernet(0x86DD, vlans=(100, 7)) + ipv6(udp(INT), 17)
    assert parse(udp6, DSCP).flow == FiveTuple(
        IPv6Address("fd00:1::1"), IPv6Address("fd00:2::2"), 17, 41000, 4791
    )
    assert parse(udp6, DSCP).hops == parse(PROBE, DSCP).hops
    assert parse(ethernet(0x0800, vlans=(9,)) + ipv4(tcp(INT), options=bytes(8)), DSCP) == parse(PROBE, DSCP)


def test_fresh_probe_and_trailing_payload():
    fresh = ethernet(0x0800) + ipv4(tcp(shim_header(b"", 2, 0xC000)))
    assert parse(fresh, DSCP).hops == ()
    assert parse(PROBE + b"payload", DSCP) == parse(PROBE, DSCP)


def test_exceeded_flags():
    def flags(value):
        report = parse(ethernet(0x0800) + ipv4(tcp(shim_header(STACK, 2, 0xC000, flags=value) + STACK)), DSCP)
        return report.hops_exceeded, report.mtu_exceeded

    assert flags(0x800) == (False, False)
    assert flags(0xC00) == (True, False)
    assert flags(0xA00) == (False, True)


def test_checksum_complement_and_domain_specific_words_are_skipped():
    stack = b"".join(hop_ports(node, 1, 2) + b"\x12\x34\x56\x78" for node in (2, 1))
    complement = shim_header(stack, 3, 0xC001) + stack
    domain = shim_header(stack, 3, 0xC000, domain=9, ds=0x8000) + stack
    for int_part in (complement, domain):
        hops = parse(ethernet(0x0800) + ipv4(tcp(int_part)), DSCP).hops
        assert [hop.node_id for hop in hops] == [1, 2]


@pytest.mark.parametrize(
    ("packet", "expected"),
    [
        (b"", Reason.TRUNCATED),
        (PROBE[:13], Reason.TRUNCATED),
        (PROBE[:30], Reason.TRUNCATED),
        (PROBE[:40], Reason.TRUNCATED),
        (PROBE[:60], Reason.TRUNCATED),
        (PROBE[:-1], Reason.TRUNCATED),
        ((ethernet(0x86DD) + ipv6(tcp(INT)))[:50], Reason.TRUNCATED),
        (ethernet(0x0806) + bytes(60), Reason.NOT_IP),
        (ethernet(0x0800, vlans=(1, 2, 3)) + ipv4(tcp(INT)), Reason.NOT_IP),
        (ethernet(0x86DD) + ipv4(tcp(INT)), Reason.BAD_IP),
        (ethernet(0x0800) + ipv6(tcp(INT)), Reason.BAD_IP),
        (ethernet(0x0800) + b"\x44" + ipv4(tcp(INT))[1:], Reason.BAD_IP),
        (ethernet(0x0800) + ipv4(tcp(INT), fragment=0x2000), Reason.BAD_IP),
        (ethernet(0x0800) + ipv4(tcp(INT), fragment=5), Reason.BAD_IP),
        (ethernet(0x0800) + ipv4(tcp(INT), protocol=1), Reason.NOT_TRANSPORT),
        (ethernet(0x0800) + ipv4(tcp(INT), dscp=DSCP + 1), Reason.NOT_INT),
        (ethernet(0x86DD) + ipv6(tcp(INT), dscp=0), Reason.NOT_INT),
        (ethernet(0x0800) + ipv4(tcp(shim_header(kind=3))), Reason.BAD_SHIM),
        (ethernet(0x0800) + ipv4(tcp(shim_header(words=2))), Reason.BAD_SHIM),
        (ethernet(0x0800) + ipv4(tcp(shim_header(words=200, hop_words=2))), Reason.TRUNCATED),
        (
            ethernet(0x0800) + ipv4(tcp(shim_header(hop_words=2, instructions=0xC000, version=1))),
            Reason.BAD_HEADER,
        ),
        (ethernet(0x0800) + ipv4(tcp(shim_header(STACK, 3, 0xC000) + STACK)), Reason.BAD_HEADER),
        (ethernet(0x0800) + ipv4(tcp(shim_header(STACK, 0, 0) + STACK)), Reason.BAD_HEADER),
        (ethernet(0x0800) + ipv4(tcp(shim_header(STACK, 2, 0xC002) + STACK)), Reason.BAD_HEADER),
        (ethernet(0x0800) + ipv4(tcp(shim_header(STACK[4:], 2, 0xC000) + STACK[4:])), Reason.BAD_STACK),
    ],
)
def test_malformed_packets_are_named(packet, expected):
    assert reason(packet) == expected


def test_bytes_are_what_scapy_sees():
    packet = Ether(ethernet(0x0800, vlans=(100,)) + ipv4(tcp(INT)))
    assert (packet[Dot1Q].vlan, packet[IP].src, packet[IP].dst, packet[IP].tos >> 2) == (
        100,
        "10.0.1.1",
        "10.0.2.2",
        DSCP,
    )
    assert (packet[TCP].sport, packet[TCP].dport, bytes(packet[TCP].payload)) == (41000, 29500, INT)


def test_probe_built_by_scapy_is_read_alike():
    built = Ether() / IPv6(src="fd00:1::1", dst="fd00:2::2", tc=DSCP << 2) / UDP(sport=5, dport=6) / INT
    report = parse(bytes(built), DSCP)
    assert report.flow == FiveTuple(IPv6Address("fd00:1::1"), IPv6Address("fd00:2::2"), 17, 5, 6)
    assert len(report.hops) == 3


@given(st.binary(max_size=200))
def test_any_bytes_give_a_report_or_a_reason(data):
    with contextlib.suppress(ReportError):
        parse(data, DSCP)


@given(
    st.lists(st.tuples(st.integers(0, len(PROBE) - 1), st.integers(0, 255)), max_size=6),
    st.integers(0, len(PROBE)),
)
def test_a_damaged_probe_gives_a_report_or_a_reason(damage, length):
    data = bytearray(PROBE[:length])
    for position, value in damage:
        if position < len(data):
            data[position] = value
    with contextlib.suppress(ReportError):
        assert len(parse(bytes(data), DSCP).hops) <= len(STACK) // 4


@given(
    st.lists(
        st.tuples(st.integers(0, 2**32 - 2), st.integers(0, 2**16 - 2), st.integers(0, 2**16 - 2)),
        max_size=20,
    ),
    st.booleans(),
    st.booleans(),
)
def test_round_trip(hops, is_ipv6, is_udp):
    stack = b"".join(hop_ports(*hop) for hop in reversed(hops))
    l4 = (udp if is_udp else tcp)(shim_header(stack, 2, 0xC000) + stack)
    protocol = 17 if is_udp else 6
    packet = ethernet(0x86DD) + ipv6(l4, protocol) if is_ipv6 else ethernet(0x0800) + ipv4(l4, protocol)
    report = parse(packet, DSCP)
    assert [(hop.node_id, hop.ingress_port, hop.egress_port) for hop in report.hops] == hops
    assert report.flow.protocol == protocol
