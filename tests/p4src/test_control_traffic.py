"""control_traffic.p4: what gets the control level, and what a tenant would like to have it and does not."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, ICMPv6ND_NS, IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from tests.p4src.network import CONTROL, Network, data, ip

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
    assert net.level_seen(ip(v6=v6) / TCP(sport=5001, dport=6001, flags=flags)) == level


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
    ack = bytes(ip(v6=v6) / TCP(sport=5001, dport=6001, flags="A", options=[("NOP", None)] * 8))
    assert net.level_seen(Ether(ack)) == CONTROL
    assert net.level_seen(Ether(ack + b"x" * 1400)) == DEFAULT
    assert net.level_seen(Ether(ack + b"x" * 9)) == DEFAULT


def test_the_padding_of_a_short_frame_is_not_data(net: Network) -> None:
    ack = bytes(ip() / TCP(sport=5001, dport=6001, flags="A"))
    assert net.level_seen(Ether(ack + bytes(60 - len(ack)))) == CONTROL
    tagged = ack[:12] + b"\x81\x00\x00\x05" * 2 + ack[12:]
    assert net.level_seen(Ether(tagged + bytes(68 - len(tagged)))) == CONTROL


def test_ack_of_a_known_flow_does_not_count_as_its_data(net: Network) -> None:
    group, _ = net.flow(data())
    net.level(group, 3)
    assert net.level_seen(ip() / TCP(sport=5001, dport=6001, flags="A")) == CONTROL
    assert net.level_seen(data()) == 3


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
