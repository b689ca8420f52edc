"""The probe's bytes: against scapy's reading of them, and the INT part field by field against INT 2.1."""

import socket
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from hostagent.flows.connection import FiveTuple
from hostagent.probe.packet import ProbeSpec, build, check, checksum, words_per_hop

FLOW4 = FiveTuple(socket.inet_aton("10.0.1.1"), socket.inet_aton("10.0.2.1"), 6, 40000, 5001)
FLOW6 = FiveTuple(
    socket.inet_pton(socket.AF_INET6, "fd00:1::1"),
    socket.inet_pton(socket.AF_INET6, "fd00:2::1"),
    17,
    49152,
    4791,
)
SPEC = ProbeSpec(FLOW4, dscp=0x17, instructions=0xDC00, max_hops=8, domain=0x1234)
SOURCE_MAC, NEXT_MAC = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")


def frame(spec):
    return build(spec, SOURCE_MAC, NEXT_MAC)


def int_part(data, layer):
    """Return the bytes behind the L4 header."""
    return bytes(layer.payload)


def valid(layer_class, packet):
    """Say whether scapy, computing the checksum anew, comes to what the packet has."""
    again = packet.copy()
    had = again[layer_class].chksum
    del again[layer_class].chksum
    return had == packet.__class__(bytes(again))[layer_class].chksum


def test_tcp_over_ipv4():
    data = frame(SPEC)
    packet = Ether(data)
    assert (packet.src, packet.dst, packet.type) == ("02:00:00:00:00:01", "02:00:00:00:00:02", 0x0800)
    ip = packet[IP]
    assert (ip.version, ip.ihl, ip.src, ip.dst, ip.proto, ip.ttl) == (4, 5, "10.0.1.1", "10.0.2.1", 6, 64)
    assert (ip.tos, ip.frag, str(ip.flags)) == (0x17 << 2, 0, "DF")
    assert ip.len == len(data) - 14 == 20 + 20 + 4 + 12
    assert valid(IP, packet)
    tcp = packet[TCP]
    assert (tcp.sport, tcp.dport, tcp.dataofs, str(tcp.flags)) == (40000, 5001, 5, "")
    assert valid(TCP, packet)


def test_udp_over_ipv6():
    data = frame(replace(SPEC, flow=FLOW6))
    packet = Ether(data)
    assert packet.type == 0x86DD
    ip = packet[IPv6]
    assert (ip.version, ip.src, ip.dst, ip.nh, ip.hlim) == (6, "fd00:1::1", "fd00:2::1", 17, 64)
    assert (ip.tc, ip.fl) == (0x17 << 2, 0)
    assert ip.plen == len(data) - 54 == 8 + 4 + 12
    udp = packet[UDP]
    assert (udp.sport, udp.dport, udp.len) == (49152, 4791, 24)
    assert valid(UDP, packet)


@pytest.mark.parametrize(
    "flow",
    [FLOW4, FLOW4._replace(protocol=17), FLOW6, FLOW6._replace(protocol=6)],
    ids=["tcp4", "udp4", "udp6", "tcp6"],
)
def test_int_headers_field_by_field(flow):
    data = frame(replace(SPEC, flow=flow))
    packet = Ether(data)
    body = bytes(packet[TCP if flow.protocol == 6 else UDP].payload)
    assert len(body) == 16
    shim, reserved_or_dscp = struct.unpack("!HH", body[:4])
    assert shim >> 12 == 1  # type: INT-MD
    assert shim >> 10 & 3 == 0  # NPT 0
    assert shim >> 8 & 3 == 0
    assert shim & 0xFF == 3  # words behind the shim
    assert reserved_or_dscp == 0  # original DSCP: best effort
    first, instructions, domain, ds_instruction, ds_flags = struct.unpack("!IHHHH", body[4:])
    assert first >> 28 == 2  # version
    assert first >> 27 & 1 == 1  # D
    assert first >> 26 & 1 == 0  # E
    assert first >> 25 & 1 == 0  # M
    assert first >> 13 & 0xFFF == 0
    assert first >> 8 & 0x1F == 7  # HopML: node id 1, ports 1, queue 1, two timestamps of 2
    assert first & 0xFF == 8
    assert (instructions, domain, ds_instruction, ds_flags) == (0xDC00, 0x1234, 0, 0)


@pytest.mark.parametrize(
    ("instructions", "words"),
    [
        (0x8000, 1),  # node id
        (0x4000, 1),  # level-1 ports
        (0x2000, 1),  # hop latency
        (0x1000, 1),  # queue
        (0x0800, 2),  # ingress timestamp
        (0x0400, 2),  # egress timestamp
        (0x0200, 2),  # level-2 ports
        (0x0100, 1),  # egress utilisation
        (0x0080, 1),  # buffer
        (0x0001, 1),  # checksum complement
        (0xDC00, 7),
        (0xFF81, 13),
    ],
)
def test_words_per_hop(instructions, words):
    assert words_per_hop(instructions) == words


@pytest.mark.parametrize("instructions", [0, 0x0040, 0x8002, 0x10000])
def test_instructions_of_unknown_length(instructions):
    with pytest.raises(ValueError, match="instruction bitmap"):
        words_per_hop(instructions)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"dscp": 64}, "DSCP 64 is not within 0 to 63"),
        ({"max_hops": 256}, "remaining hop count 256"),
        ({"max_hops": 0}, "remaining hop count 0"),
        ({"domain": 65536}, "INT domain 65536"),
        ({"flow": FLOW4._replace(source_port=65536)}, "source port 65536"),
        ({"flow": FLOW4._replace(destination_port=70000)}, "destination port 70000"),
        ({"flow": FLOW4._replace(protocol=132)}, "protocol 132"),
        ({"flow": FLOW4._replace(source=b"\n")}, "addresses of 1 and 4 bytes"),
        ({"flow": FLOW4._replace(destination=FLOW6.destination)}, "addresses of 4 and 16 bytes"),
    ],
)
def test_what_cannot_be_sent_is_refused(changes, text):
    with pytest.raises(ValueError, match=text):
        check(replace(SPEC, **changes))
    with pytest.raises(ValueError, match=text):
        frame(replace(SPEC, **changes))


def test_rfc_1071_example():
    assert checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0x220D
    assert checksum(b"\x01") == 0xFEFF


PORTS = st.integers(0, 65535)


@given(
    st.sampled_from([4, 16]).flatmap(
        lambda n: st.tuples(st.binary(min_size=n, max_size=n), st.binary(min_size=n, max_size=n))
    ),
    st.sampled_from([6, 17]),
    PORTS,
    PORTS,
    st.integers(0, 63),
    st.integers(1, 255),
    PORTS,
)
def test_every_checksum_is_valid(addresses, protocol, source_port, destination_port, dscp, hops, domain):
    flow = FiveTuple(*addresses, protocol, source_port, destination_port)
    data = frame(ProbeSpec(flow, dscp, 0xC000, hops, domain))
    start = 14 + (20 if len(flow.source) == 4 else 40)
    if len(flow.source) == 4:
        assert checksum(data[14:34]) == 0
    body = data[start:]
    assert checksum(flow.source + flow.destination + struct.pack("!II", len(body), protocol) + body) == 0
    if protocol == 17:
        assert body[6:8] != b"\0\0"
