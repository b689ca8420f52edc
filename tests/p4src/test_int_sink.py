"""int_sink.p4: probes end at the controller, and reach no host."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from controlplane.int_report import parse
from p4src import program
from tests.p4src.network import HOSTS, HOSTS6, INT_DSCP, Network, int_bytes, ip, probe

REASON = program("v1model").constants["REASON_INT_PROBE"]


@pytest.fixture
def net(network: Network) -> Network:
    network.route()
    network.sinks(node_id=11)
    return network


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize(("udp", "dport"), [(False, 6001), (True, 6001), (True, 4791)])
def test_probe_goes_to_the_controller_with_the_last_hop(
    net: Network, v6: bool, udp: bool, dport: int
) -> None:
    before = net.runtime.counter("int_sunk", 1)[0]
    net.lab.wires[1].send(bytes(probe(0xC000, udp=udp, dport=dport, v6=v6)))
    report = net.runtime.packet_in(3)
    assert report is not None
    assert report.metadata == {"ingress_port": 1, "egress_port": 2, "reason": REASON}
    assert net.lab.wires[2].receive(0.1) is None
    assert net.runtime.counter("int_sunk", 1)[0] == before + 1

    seen = parse(report.payload, INT_DSCP)
    addresses = HOSTS6 if v6 else HOSTS
    assert (str(seen.flow.source), str(seen.flow.destination)) == (addresses[1], addresses[2])
    assert (seen.flow.protocol, seen.flow.source_port, seen.flow.destination_port) == (
        17 if udp else 6,
        5001,
        dport,
    )
    (hop,) = seen.hops
    assert (hop.node_id, hop.ingress_port, hop.egress_port) == (11, 1, 2)
    assert seen.remaining_hops == 7
    check_lengths(report.payload)


def test_probe_keeps_its_vlan_tag(net: Network) -> None:
    frame = bytes(probe())
    net.lab.wires[1].send(frame[:12] + bytes.fromhex("81000007") + frame[12:])
    report = net.runtime.packet_in(3)
    assert report is not None
    assert report.payload[12:16] == bytes.fromhex("81000007")
    assert len(parse(report.payload, INT_DSCP).hops) == 1


def test_probe_that_may_take_no_more_hops_is_sunk_with_the_e_bit(net: Network) -> None:
    net.lab.wires[1].send(bytes(probe(hops=0)))
    report = net.runtime.packet_in(3)
    assert report is not None
    seen = parse(report.payload, INT_DSCP)
    assert seen.hops_exceeded
    assert seen.hops == ()


def test_probe_of_another_source_is_sunk_even_when_it_is_not_understood(net: Network) -> None:
    """From a neighbour that knows instructions this switch does not: no hop is added, and no host sees it."""
    net.lab.wires[3].send(bytes(probe(0xC000 | 1 << 6, hop_ml=3, source=3)))
    report = net.runtime.packet_in(3)
    assert report is not None
    assert net.lab.wires[2].receive(0.1) is None
    assert report.payload[54:] == int_bytes(0xC000 | 1 << 6, hop_ml=3)


def test_probe_without_a_route_or_ttl_goes_nowhere(net: Network) -> None:
    net.vanishes(probe(ttl=1))
    net.runtime.modify("ipv4_lpm", {"dst": "10.0.2.1/32"}, "drop")
    net.vanishes(probe())


def test_switch_without_a_node_id_forwards_no_probe(network: Network) -> None:
    network.route()
    network.vanishes(probe())
    network.vanishes(probe(destination=3))


def test_only_a_port_that_is_said_to_relay_does(network: Network) -> None:
    network.route()
    network.runtime.default("int_node", "set_int_node", node_id=11)
    network.runtime.insert("int_sink", {"egress_port": 3}, "relay")
    network.lab.wires[1].send(bytes(probe()))
    assert network.runtime.packet_in(3) is not None
    network.through(probe(destination=3), 1, 3)


def test_data_on_the_way_to_a_host_is_not_sunk(net: Network) -> None:
    net.through(ip() / UDP(sport=5001, dport=6001) / int_bytes(0xC000), 1, 2)
    assert net.runtime.packet_in(0.1) is None


def check_lengths(frame: bytes) -> None:
    """Check that IP and UDP lengths say what the frame holds, and the IPv4 checksum."""
    packet = Ether(frame)
    if IP in packet:
        assert packet[IP].len == len(frame) - 14
        again = packet[IP].copy()
        del again.chksum
        assert IP(bytes(again)).chksum == packet[IP].chksum
    else:
        assert packet[IPv6].plen == len(frame) - 54
    if UDP in packet:
        assert packet[UDP].len == len(frame) - (34 if IP in packet else 54)
