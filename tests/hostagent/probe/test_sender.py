import asyncio
import socket
import subprocess

import pytest

from hostagent.flows.connection import FiveTuple
from hostagent.interface import find
from hostagent.probe.packet import ProbeSpec, build
from hostagent.probe.sender import ProbeSender


def spec(two_hosts, version=0, **changes):
    family = (socket.AF_INET, socket.AF_INET6)[version]
    flow = FiveTuple(
        socket.inet_pton(family, two_hosts.a_addresses[version]),
        socket.inet_pton(family, two_hosts.b_addresses[version]),
        6,
        40000,
        5001,
    )
    return ProbeSpec(flow._replace(**changes), 0x17, 0xDC00, 8)


def send(two_hosts, probe, gateway_mac=None):
    def inside():
        sender = ProbeSender(find("data0", ()), gateway_mac)
        try:
            return asyncio.run(sender.send(probe))
        finally:
            sender.close()

    return two_hosts.inside(two_hosts.a, inside)


def receiver(two_hosts):
    def inside():
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
        raw.bind(("data0", 0))
        raw.settimeout(2)
        return raw

    return two_hosts.inside(two_hosts.b, inside)


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


@pytest.mark.parametrize("version", [0, 1], ids=["ipv4", "ipv6"])
def test_probe_arrives_whole_at_the_neighbour(two_hosts, version):
    neighbour = two_hosts.b_addresses[version]
    subprocess.run(
        ["ip", "-n", two_hosts.a, "neigh", "add", neighbour, "lladdr", two_hosts.b_mac, "dev", "data0"],
        check=True,
    )
    probe = spec(two_hosts, version)
    with receiver(two_hosts) as raw:
        assert send(two_hosts, probe) == ""
        wanted = build(probe, mac(two_hosts.a_mac), mac(two_hosts.b_mac))
        while (data := raw.recv(2000)) != wanted:
            assert data[12:14] in (b"\x86\xdd", b"\x08\x06")  # router solicitations and the like


def test_configured_gateway(two_hosts):
    probe = spec(two_hosts)
    with receiver(two_hosts) as raw:
        assert send(two_hosts, probe, bytes.fromhex("02aabbccddee")) == ""
        while (data := raw.recv(2000))[:6] != bytes.fromhex("02aabbccddee"):
            pass
        assert data == build(probe, mac(two_hosts.a_mac), bytes.fromhex("02aabbccddee"))


def test_a_containers_address_that_is_spoken_for(two_hosts):
    foreign = socket.inet_aton("10.201.0.77")
    probe = spec(two_hosts, source=foreign)

    def inside():
        sender = ProbeSender(find("data0", ()), mac(two_hosts.b_mac))
        try:
            sender.speak_for([foreign])
            own = asyncio.run(sender.send(spec(two_hosts)))
            return asyncio.run(sender.send(probe)), own
        finally:
            sender.close()

    with receiver(two_hosts) as raw:
        sent, own = two_hosts.inside(two_hosts.a, inside)
        assert sent == ""
        assert "not an address" in own
        wanted = build(probe, mac(two_hosts.a_mac), mac(two_hosts.b_mac))
        while raw.recv(2000) != wanted:
            pass


def test_errors_are_told_not_raised(two_hosts):
    foreign = socket.inet_aton("10.201.0.77")
    assert "not an address of data0" in send(two_hosts, spec(two_hosts, source=foreign))
    assert "protocol 1 is neither" in send(two_hosts, spec(two_hosts, protocol=1))
    assert "is not known" in send(two_hosts, spec(two_hosts))
    subprocess.run(["ip", "-n", two_hosts.a, "link", "set", "data0", "down"], check=True)
    assert send(two_hosts, spec(two_hosts), bytes(6)) == "data0: Network is down"
