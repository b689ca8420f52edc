"""control_traffic.p4: what gets the control level, and what a tenant would like to have it and does not."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, ICMPv6ND_NS, IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from tests.p4src.network import CONTROL, HOSTS, HOSTS6, Network, ack, data, ip

DEFAULT = 1


def cnp(length: int = 16, opcode: int = 0x81) -> bytes:
    """Return a BTH with ``length`` bytes of payload and an ICRC."""
    return bytes([opcode, 0, 0xFF, 0xFF, 0]) + bytes([0, 0, 5]) + bytes(4) + bytes(length) + bytes(4)


@pytest.fixture
def net(network: Network) -> Network:
    network.route()
    network.levels()
    return network


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize(("flags", "level"), [("A", 7), ("S", 7), ("FA", 7), ("R", 1), ("RA", 1)])
def test_tcp_without_payload(net: Network, v6: bool, flags: str, level: int) -> None:
    assert net.level_seen(ack(flags=flags, v6=v6)) == level


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize("flags", ["A", "S", "FA", "R", "RA"])
def test_tcp_without_payload_of_a_known_flow_goes_as_its_data(net: Network, v6: bool, flags: str) -> None:
    group, _ = net.flow(data(v6=v6))
    net.level(group, 3)
    assert [net.level_seen(frame) for frame in (data(v6=v6), ack(flags=flags, v6=v6))] == [3, 3]


@pytest.mark.parametrize("v6", [False, True])
def test_acks_against_a_flow_in_one_direction_do_not_starve_with_it(net: Network, v6: bool) -> None:
    group, _ = net.flow(data(v6=v6))
    net.level(group, 0)
    back = ip(2, 1, v6=v6) / TCP(sport=6001, dport=5001, flags="A")
    assert net.level_seen(back, ingress=2, egress=1) == CONTROL
    net.level(reverse := net.group(), 2)
    address = HOSTS6 if v6 else HOSTS
    net.runtime.insert(
        "flow_group_v6" if v6 else "flow_group_v4",
        {"src": address[2], "dst": address[1], "protocol": 6, "sport": 6001, "dport": 5001},
        "set_group",
        group=reverse,
        slot=70_000 + reverse,
    )
    assert net.level_seen(back, ingress=2, egress=1) == 2


@pytest.mark.parametrize("v6", [False, True])
def test_tcp_options_are_not_payload(net: Network, v6: bool) -> None:
    header = TCP(
        sport=5001, dport=6001, flags="A", options=[("Timestamp", (1, 2)), ("NOP", None), ("NOP", None)]
    )
    assert net.level_seen(ip(v6=v6) / header) == CONTROL
    assert net.level_seen(ip(v6=v6) / header / b"x") == DEFAULT


def test_ipv4_options_may_be_data(net: Network) -> None:
    frame = ip()
    frame[IP].options = b"\x01" * 8
    assert net.level_seen(frame / TCP(sport=5001, dport=6001, flags="A")) == DEFAULT


@pytest.mark.parametrize("v6", [False, True])
def test_data_behind_the_ip_packet(net: Network, v6: bool) -> None:
    small = bytes(ip(v6=v6) / TCP(sport=5001, dport=6001, flags="A", options=[("NOP", None)] * 8))
    assert net.level_seen(Ether(small)) == CONTROL
    assert net.level_seen(Ether(small + b"x" * 1400)) == DEFAULT
    assert net.level_seen(Ether(small + b"x" * 9)) == DEFAULT


def test_the_padding_of_a_short_frame_is_not_data(net: Network) -> None:
    small = bytes(ack())
    assert net.level_seen(Ether(small + bytes(60 - len(small)))) == CONTROL
    tagged = small[:12] + b"\x81\x00\x00\x05" * 2 + small[12:]
    assert net.level_seen(Ether(tagged + bytes(68 - len(tagged)))) == CONTROL


@pytest.mark.parametrize("v6", [False, True])
def test_cnp(net: Network, v6: bool) -> None:
    def roce(payload: bytes) -> Packet:
        return ip(v6=v6) / UDP(sport=50000, dport=4791) / payload

    assert net.level_seen(roce(cnp())) == CONTROL
    assert net.level_seen(roce(cnp(opcode=0x11))) == DEFAULT
    assert net.level_seen(roce(cnp(length=1000))) == DEFAULT  # data behind a CNP's opcode
    liar = ip(v6=v6) / UDP(sport=50000, dport=4791, len=40) / (cnp() + b"x" * 1000)
    assert net.level_seen(liar) == DEFAULT


def test_neighbour_discovery(net: Network) -> None:
    solicitation = ICMPv6ND_NS(tgt="fd00::2:1")
    assert net.level_seen(ip(v6=True, ttl=255) / solicitation) == CONTROL
    assert net.level_seen(ip(v6=True, ttl=64) / solicitation) == DEFAULT
    assert net.level_seen(ip(v6=True, ttl=255) / solicitation / (b"x" * 1000)) == DEFAULT
    assert net.level_seen(ip(v6=True, ttl=255) / solicitation / (b"x" * 24)) == DEFAULT
    assert net.level_seen(ip(v6=True, ttl=255) / ICMPv6EchoRequest()) == DEFAULT


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize(
    "payload",
    [
        TCP(sport=40000, dport=179) / b"x",
        TCP(sport=179, dport=40000) / b"x",
        UDP(sport=49152, dport=3784) / b"x",
    ],
)
def test_routing_protocols_count_between_switches_only(net: Network, v6: bool, payload: Packet) -> None:
    from_switch = ip(3, v6=v6, ttl=255) / payload
    assert net.level_seen(from_switch, ingress=3) == CONTROL
    assert net.level_seen(from_switch, ingress=1) == DEFAULT
    assert net.level_seen(ip(3, v6=v6, ttl=254) / payload, ingress=3) == DEFAULT  # may have come from a host


@pytest.mark.parametrize("v6", [False, True])
def test_ospf(net: Network, v6: bool) -> None:
    frame = ip(3, v6=v6, ttl=255)
    if v6:
        frame[IPv6].nh = 89
    else:
        frame[IP].proto = 89
    frame /= b"x" * 24
    assert net.level_seen(frame, ingress=3) == CONTROL
    assert net.level_seen(frame, ingress=1) == DEFAULT
