import socket
import subprocess

import pytest

from hostagent.probe.nexthop import NoNextHopError, resolve


def packed(address):
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def ask(two_hosts, destination, interface="data0"):
    def inside():
        source = two_hosts.a_addresses[1 if ":" in destination else 0]
        index = socket.if_nametoindex(interface)
        return resolve(packed(source), packed(destination), index).hex(":")

    return two_hosts.inside(two_hosts.a, inside)


def ip(two_hosts, *arguments):
    subprocess.run(["ip", "-n", two_hosts.a, *arguments], check=True)


@pytest.mark.parametrize("version", [0, 1], ids=["ipv4", "ipv6"])
def test_neighbour(two_hosts, version):
    address = two_hosts.b_addresses[version]
    with pytest.raises(NoNextHopError, match="is not known"):
        ask(two_hosts, address)
    ip(two_hosts, "neigh", "add", address, "lladdr", "02:00:00:00:00:99", "dev", "data0")
    assert ask(two_hosts, address) == "02:00:00:00:00:99"


@pytest.mark.parametrize(
    ("destination", "via", "gateway"),
    [
        ("10.9.9.9", ["via", "10.201.0.254"], "10.201.0.254"),
        ("fd00:9::9", ["via", "fd00:201::fe"], "fd00:201::fe"),
        ("10.9.9.9", ["via", "inet6", "fd00:201::fe"], "fd00:201::fe"),
    ],
    ids=["ipv4", "ipv6", "ipv4-via-ipv6"],
)
def test_gateway(two_hosts, destination, via, gateway):
    ip(two_hosts, "route", "add", destination, *via, "dev", "data0")
    ip(two_hosts, "neigh", "add", gateway, "lladdr", "02:00:00:00:00:fe", "dev", "data0")
    assert ask(two_hosts, destination) == "02:00:00:00:00:fe"


def test_no_route(two_hosts):
    with pytest.raises(NoNextHopError, match=r"no route to 10\.77\.0\.1"):
        ask(two_hosts, "10.77.0.1")


def test_route_by_another_interface(two_hosts):
    with pytest.raises(NoNextHopError, match="leaves by interface"):
        ask(two_hosts, two_hosts.b_addresses[0], interface="lo")
