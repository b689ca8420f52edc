"""int_transit.p4: what a hop pushes, where, and when it does not."""

from __future__ import annotations

import struct
import time

import pytest
from scapy.layers.inet import TCP, UDP
from scapy.layers.l2 import Ether

from controlplane.int_report import parse
from tests.p4src.network import INT_DSCP, Network, int_bytes, ip, probe
from tests.p4src.test_int_sink import check_lengths

ALL = 0xFF80
"""Every instruction that is not reserved: 12 words a hop."""


@pytest.fixture
def net(network: Network) -> Network:
    network.route()
    network.levels()
    network.sinks(node_id=11)
    return network


def test_every_instruction(net: Network) -> None:
    frame = probe(ALL, destination=3)
    out = bytes(net.through(frame, 1, 3))
    assert len(out) == len(frame) + 48
    hop = out[54 + 16 : 54 + 16 + 48]
    node, ingress1, egress1, latency, queue, t_in, t_out, ingress2, egress2, used, buffer = struct.unpack(
        "!IHHIIQQIIII", hop
    )
    assert (node, ingress1, egress1, ingress2, egress2) == (11, 1, 3, 1, 3)
    assert queue >> 24 == 7  # the control level's
    assert queue & 0xFFFFFF < 64
    assert t_out - t_in == latency
    assert latency % 1000 == 0
    assert latency < 3_000_000_000
    assert (used, buffer) == (0xFFFFFFFF, 0xFFFFFFFF)
    assert out[54 + 1] == 3 + 12
    assert out[54 + 4 + 2] == 12
    assert out[54 + 4 + 3] == 7
    check_lengths(out)


@pytest.mark.parametrize("bit", range(9))
def test_each_instruction_alone(net: Network, bit: int) -> None:
    words = 2 if bit in (4, 5, 6) else 1
    out = bytes(net.through(probe(0x8000 >> bit, destination=3), 1, 3))
    assert len(out) == 54 + 16 + 4 * words
    assert out[55] == 3 + words
    check_lengths(out)


def test_clocks_are_nanoseconds(net: Network) -> None:
    def ingress_time() -> int:
        return int.from_bytes(bytes(net.through(probe(0x0800, destination=3), 1, 3))[70:78])

    before, started = ingress_time(), time.monotonic_ns()
    time.sleep(0.2)
    passed, here = ingress_time() - before, time.monotonic_ns() - started
    assert 0.5 * here < passed < 1.5 * here


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize("udp", [False, True])
def test_several_hops_newest_first(net: Network, v6: bool, udp: bool) -> None:
    """The same switch plays every hop: what leaves towards the fabric comes back under another node id."""
    frame: bytes = bytes(net.through(probe(0xD000, udp=udp, v6=v6, destination=3), 1, 3))
    net.runtime.default("int_node", "set_int_node", node_id=12)
    frame = bytes(net.through(frame, 4, 3))
    net.runtime.default("int_node", "set_int_node", node_id=13)
    address = "fd00::3:1/128" if v6 else "10.0.3.1/32"
    net.runtime.modify(
        "ipv6_lpm" if v6 else "ipv4_lpm", {"dst": address}, "set_nhop", port=2, dmac="02:00:00:00:00:02"
    )
    net.lab.wires[3].send(frame)
    report = net.runtime.packet_in(3)
    assert report is not None
    seen = parse(report.payload, INT_DSCP)
    assert [(hop.node_id, hop.ingress_port, hop.egress_port) for hop in seen.hops] == [
        (11, 1, 3),
        (12, 4, 3),
        (13, 3, 2),
    ]
    assert [hop.queue for hop in seen.hops] == [7, 7, None]
    assert seen.remaining_hops == 5
    check_lengths(report.payload)


def test_probe_keeps_its_mark_where_levels_rewrite_the_dscp(net: Network) -> None:
    out = net.through(probe(destination=3), 1, 3)
    assert bytes(out)[15] >> 2 == INT_DSCP


def test_probe_takes_the_flows_path(net: Network) -> None:
    """ECMP hashes a probe as it hashes the flow."""
    net.runtime.insert("ipv4_lpm", {"dst": "10.9.0.0/16"}, "set_ecmp", group=9, count=2)
    for member, port in enumerate((3, 4)):
        net.runtime.insert(
            "ecmp", {"group": 9, "member": member}, "set_nhop", port=port, dmac="02:00:00:00:00:09"
        )
    net.runtime.default("ecmp_seed", "set_seed", seed=77)
    taken = set()
    for sport in range(7000, 7016):
        flow = ip() / TCP(sport=sport, dport=6001, flags="A") / b"data"
        flow["IP"].dst = "10.9.0.1"
        trace = ip(dscp=INT_DSCP) / TCP(sport=sport, dport=6001, flags="A") / int_bytes(0x4000)
        trace["IP"].dst = "10.9.0.1"
        (port, _), (probed, out) = net.leaves(flow), net.leaves(trace)
        assert probed == port
        assert int.from_bytes(bytes(out)[72:74]) == port
        taken.add(port)
    assert taken == {3, 4}


def test_no_hops_left_sets_e_and_pushes_nothing(net: Network) -> None:
    out = bytes(net.through(probe(hops=0, destination=3), 1, 3))
    assert out[54:] == int_bytes(0xC000, hops=0, e=1)


def test_unknown_instructions_push_nothing_and_use_no_hop(net: Network) -> None:
    sent = probe(0xC000 | 1 << 6, hop_ml=3, source=3, destination=4)
    assert bytes(net.through(sent, 3, 4))[54:] == bytes(sent)[54:]


def test_probe_that_would_outgrow_the_mtu_sets_m(net: Network) -> None:
    fits = probe(0xC000, source=3, destination=4) / bytes(1500 - 40 - 16 - 8)
    out = bytes(net.through(fits, 3, 4))
    assert len(out) == 1514
    assert out[55] == 5
    out = bytes(net.through(fits / b"x", 3, 4))
    assert out[54:70] == int_bytes(0xC000, m=1)
    assert len(out) == 1507


def test_full_shim_sets_m(net: Network) -> None:
    sent = probe(0xC000, stack=bytes(4 * 251), source=3, destination=4)
    out = bytes(net.through(sent, 3, 4))
    assert out[54:70] == int_bytes(0xC000, m=1, stack=bytes(4 * 251))[:16]


def test_payload_behind_the_stack_stays_behind_it(net: Network) -> None:
    out = bytes(net.through(probe(0x8000, udp=True, destination=3) / b"tail", 1, 3))
    assert out[42 + 16 :] == (11).to_bytes(4) + b"tail"
    assert Ether(out)[UDP].len == 8 + 16 + 4 + 4
