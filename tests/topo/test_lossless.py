import pytest

from topo import fabric, lossless


def test_payload_per_wire_byte_counts_every_header():
    # 20 bytes of IPv4, 20 of TCP, 8,738 of payload; 14 more of Ethernet are on the wire.
    assert (lossless.SEGMENT, lossless.MTU, lossless.FRAME) == (8738, 8778, 8792)
    assert pytest.approx(lossless.SLACK * 8738 / 8792) == lossless.EFFICIENCY
    assert lossless.WINDOW == 15 * lossless.SEGMENT


def test_queues_hold_what_many_flows_have_in_flight():
    assert 60 * lossless.WINDOW // lossless.SEGMENT <= lossless.QUEUE_DEPTH


def test_host_script_sends_everything_to_the_gateway_by_static_neighbour():
    host = fabric.pair(1, 100, 1000).hosts["h2"]
    lines = lossless.host_script(host).splitlines()
    assert lines[0] == "set -e"
    assert "ip address add 10.2.0.1/32 dev h2-eth0" in lines
    assert f"ip neighbour add 10.2.0.254 lladdr {fabric.ROUTER_MAC} nud permanent dev h2-eth0" in lines
    assert any("default via 10.2.0.254" in line and "rto_min 3s window 131070" in line for line in lines)
    assert any(line.startswith("ip -6 route add default via fe80::1") for line in lines)
