"""int_edge.p4: from a host, a fresh probe and nothing else that says INT."""

from __future__ import annotations

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from p4src import program
from tests.p4src.network import INT_DSCP, Network, int_bytes, ip, probe

MAX_HOPS = program("v1model").constants["INT_MAX_HOPS"]


@pytest.fixture
def net(network: Network) -> Network:
    network.route()
    network.sinks(node_id=11)
    return network


FORGED: dict[str, Packet] = {
    "a hop that was not": probe(0xC000, stack=bytes(8)),
    "no D bit": probe(d=0),
    "E set": probe(e=1),
    "M set": probe(m=1),
    "another INT version": probe(version=1),
    "INT-MX": probe(kind=3),
    "hop length too small": probe(0xC000, hop_ml=1),
    "hop length too large": probe(0xC000, hop_ml=31),
    "a reserved instruction": probe(0xC000 | 1 << 6, hop_ml=3),
    "the checksum complement": probe(0xC001, hop_ml=3),
    "domain-specific instructions": probe(ds_instruction=1),
    "no INT at all": ip(dscp=INT_DSCP) / TCP(sport=5001, dport=6001, flags="A") / b"plain data",
    "half a header": ip(dscp=INT_DSCP) / UDP(sport=5001, dport=6001) / int_bytes(0xC000)[:9],
    "TCP options": ip(dscp=INT_DSCP)
    / TCP(sport=5001, dport=6001, options=[("Timestamp", (1, 2)), ("NOP", None), ("NOP", None)])
    / int_bytes(0xC000),
    "not TCP or UDP": ip(dscp=INT_DSCP) / ICMP(),
    "data at the control level": probe() / bytes(73),
    "IPv6, data at the control level": probe(v6=True) / bytes(93),
    "data behind the IP packet": Ether(bytes(probe()) + bytes(1400)),
    "IPv6, data behind the IP packet": Ether(bytes(probe(v6=True)) + bytes(1400)),
    "IPv6, with a stack": probe(0xC000, stack=bytes(8), v6=True),
}


@pytest.mark.parametrize("what", FORGED)
def test_host_may_not_send(net: Network, what: str) -> None:
    before = net.runtime.counter("edge_drop", 1)[0]
    net.vanishes(FORGED[what])
    assert net.runtime.counter("edge_drop", 1)[0] == before + 1


@pytest.mark.parametrize(("flags", "offset"), [("MF", 0), ("MF", 10), (0, 10)])
def test_fragment_of_a_probe_is_dropped(net: Network, flags: str | int, offset: int) -> None:
    frame = probe(udp=True)
    frame[IP].flags, frame[IP].frag = flags, offset
    net.vanishes(frame)


def test_unnamed_port_is_not_trusted(net: Network) -> None:
    net.runtime.modify("edge_port", {"ingress_port": 3}, "host_facing")
    net.vanishes(probe(0xC000, stack=bytes(8), source=3), ingress=3)


@pytest.mark.parametrize(
    "what", ["no D bit", "INT-MX", "no INT at all", "another INT version", "not TCP or UDP"]
)
def test_a_switch_may_not_send_what_is_no_probe_either(net: Network, what: str) -> None:
    before = net.runtime.counter("edge_drop", 3)[0]
    net.vanishes(FORGED[what], ingress=3)
    assert net.runtime.counter("edge_drop", 3)[0] == before + 1


@pytest.mark.parametrize(("v6", "room"), [(False, 72), (True, 92)])
def test_a_little_payload_is_allowed(net: Network, v6: bool, room: int) -> None:
    net.through(probe(destination=3, v6=v6) / bytes(room), 1, 3)


def test_hops_are_limited_for_hosts(net: Network) -> None:
    out = net.through(probe(hops=255, destination=3), 1, 3)
    assert bytes(out)[54 + 4 + 3] == MAX_HOPS - 1
    out = net.through(probe(hops=255, source=3, destination=4), 3, 4)
    assert bytes(out)[54 + 4 + 3] == 254
