"""forwarding.p4: longest prefix, TTL, ECMP, and what is dropped."""

from __future__ import annotations

from collections import Counter

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether

from tests.p4src.network import ROUTER, Network, data, ip, mac
from tests.p4src.test_level_control import assert_checksum


@pytest.mark.parametrize("v6", [False, True])
def test_routed_packet_has_new_addresses_and_one_hop_less(network: Network, v6: bool) -> None:
    network.route()
    frame = data(v6=v6)
    out = network.through(frame, 1, 2)
    assert (out.src, out.dst) == (ROUTER, mac(2))
    if v6:
        assert out[IPv6].hlim == 63
    else:
        assert out[IP].ttl == 63
        assert_checksum(out)
    assert bytes(out[TCP]) == bytes(frame[TCP])


@pytest.mark.parametrize("checksum", [0x0000, 0x00FF, 0x0100, 0xFEFE, 0xFEFF, 0xFF00, 0xFFFE])
def test_checksum_carries(network: Network, checksum: int) -> None:
    """The identification brings the header's checksum to where the addition carries."""
    network.route()
    frame = data()
    frame[IP].id = 0
    without = IP(bytes(frame[IP])).chksum
    frame[IP].id = (without - checksum) % 0xFFFF
    frame = Ether(bytes(frame))
    assert frame[IP].chksum == checksum
    assert_checksum(network.through(frame, 1, 2))


def test_broken_checksum_stays_broken(network: Network) -> None:
    network.route()
    frame = data()
    frame[IP].chksum = 0x1234
    out = network.through(frame, 1, 2)
    assert out[IP].chksum == 0x1334


def test_longest_prefix_wins(network: Network) -> None:
    network.runtime.insert("ipv4_lpm", {"dst": "10.0.0.0/8"}, "set_nhop", port=3, dmac=mac(3))
    network.runtime.insert("ipv4_lpm", {"dst": "10.0.2.0/24"}, "set_nhop", port=2, dmac=mac(2))
    network.through(data(), 1, 2)
    network.runtime.insert("ipv4_lpm", {"dst": "10.0.2.1/32"}, "set_nhop", port=4, dmac=mac(4))
    network.through(data(), 1, 4)


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize("ttl", [0, 1])
def test_used_up_ttl_is_dropped(network: Network, v6: bool, ttl: int) -> None:
    network.route()
    network.vanishes(data(v6=v6, ttl=ttl))


def test_what_has_no_route_is_dropped(network: Network) -> None:
    network.vanishes(data())
    network.vanishes(data(v6=True))


def test_not_ip_is_dropped(network: Network) -> None:
    network.route()
    network.vanishes(Ether(src=mac(1), dst="ff:ff:ff:ff:ff:ff") / ARP(pdst="10.0.2.1"))
    for first in (0x44, 0x40, 0x65, 0x05):
        frame = bytearray(bytes(data()))
        frame[14] = first
        network.vanishes(bytes(frame), quiet_s=0.1)


@pytest.mark.parametrize("keep", [15, 33, 34 + 19])
def test_truncated_header_is_dropped(network: Network, keep: int) -> None:
    network.route()
    network.vanishes(bytes(data())[:keep], quiet_s=0.1)


def test_drop_route(network: Network) -> None:
    network.runtime.insert("ipv4_lpm", {"dst": "10.0.0.0/8"}, "set_nhop", port=2, dmac=mac(2))
    network.runtime.insert("ipv4_lpm", {"dst": "10.0.2.1/32"}, "drop")
    network.vanishes(data())


def test_other_protocols_are_routed(network: Network) -> None:
    network.route()
    assert network.through(ip() / ICMP() / b"ping", 1, 2)[ICMP].type == 8


def test_port_counters_count_every_packet(network: Network) -> None:
    network.route()
    before = [
        network.runtime.counter("ingress_port_counter", 1),
        network.runtime.counter("egress_port_counter", 2),
    ]
    for _ in range(4):
        network.through(data(), 1, 2)
    after = [
        network.runtime.counter("ingress_port_counter", 1),
        network.runtime.counter("egress_port_counter", 2),
    ]
    for (packets, size), (more_packets, more_size) in zip(before, after, strict=True):
        assert (more_packets - packets, more_size - size) == (4, 4 * len(data()))


def choices(network: Network, seed: int, flows: int, v6: bool = False) -> list[int]:
    """Return the port, 3 or 4, of each of many flows under a seed."""
    network.runtime.default("ecmp_seed", "set_seed", seed=seed)
    for wire in network.lab.wires.values():
        wire.drain()
    for flow in range(flows):
        l4 = UDP(sport=20000 + flow, dport=6001)
        network.lab.wires[1].send(bytes(ip(v6=v6) / l4 / b"x"))
        if flow % 32 == 31:
            network.lab.wires[1].receive(0.02)  # slow enough for queues of 64
    ports: dict[int, int] = {}
    for port in (3, 4):
        while (frame := network.lab.wires[port].receive(0.2)) is not None:
            ports[Ether(frame)[UDP].sport] = port
    assert len(ports) == flows
    return [ports[20000 + flow] for flow in range(flows)]


def ecmp(network: Network) -> None:
    network.runtime.insert("ipv4_lpm", {"dst": "10.0.0.0/8"}, "set_ecmp", group=9, count=2)
    network.runtime.insert("ipv6_lpm", {"dst": "fd00::/16"}, "set_ecmp", group=9, count=2)
    for member, port in enumerate((3, 4)):
        network.runtime.insert("ecmp", {"group": 9, "member": member}, "set_nhop", port=port, dmac=mac(port))


@pytest.mark.parametrize("v6", [False, True])
def test_ecmp_spreads_flows_and_keeps_each_on_its_path(network: Network, v6: bool) -> None:
    ecmp(network)
    first = choices(network, 1, 200, v6)
    assert 70 <= Counter(first)[3] <= 130
    assert choices(network, 1, 200, v6) == first


@pytest.mark.parametrize(("one", "other"), [(1, 2), (0, 0x80000000), (7, 0xFFFFFFFF)])
def test_seeds_decorrelate_two_tiers(network: Network, one: int, other: int) -> None:
    """Flows that the first tier sends the same way must split again at the second.

    With the seed as one more input of a CRC they would all choose alike: 0 or 100 of 100. Fifty is
    expected; thirty is more than four standard deviations away.
    """
    ecmp(network)
    first, second = choices(network, one, 200), choices(network, other, 200)
    for port in (3, 4):
        together = [b for a, b in zip(first, second, strict=True) if a == port]
        assert 0.3 < Counter(together)[3] / len(together) < 0.7


def test_ecmp_member_that_is_missing_is_dropped(network: Network) -> None:
    network.runtime.insert("ipv4_lpm", {"dst": "10.0.0.0/8"}, "set_ecmp", group=9, count=2)
    network.vanishes(data())
    network.runtime.modify("ipv4_lpm", {"dst": "10.0.0.0/8"}, "set_ecmp", group=9, count=0)
    network.vanishes(data())
