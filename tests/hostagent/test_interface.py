import socket
import subprocess
from ipaddress import ip_address

import pytest
from pyroute2 import IPRoute

from hostagent.interface import find
from leveller.errors import UserError


def at(two_hosts, *wanted, name="data0"):
    return two_hosts.inside(two_hosts.a, lambda: find(name, tuple(map(ip_address, wanted))))


def test_all_addresses_but_link_local_ones(two_hosts):
    port = at(two_hosts)
    assert port.mac.hex(":") == two_hosts.a_mac
    assert {str(ip_address(address)) for address in port.addresses} == set(two_hosts.a_addresses)
    assert port.index == two_hosts.inside(two_hosts.a, lambda: socket.if_nametoindex("data0"))


def test_chosen_addresses(two_hosts):
    assert at(two_hosts, "10.201.0.1").addresses == (bytes([10, 201, 0, 1]),)


def test_mistakes(two_hosts):
    with pytest.raises(UserError, match=r"no interface eth7.*give one of: data0, lo"):
        at(two_hosts, name="eth7")
    with pytest.raises(UserError, match=r"10\.0\.0\.9 is not an address of data0: it has: 10\.201\.0\.1"):
        at(two_hosts, "10.0.0.9")


def test_interface_without_address(two_hosts):
    def flush() -> None:
        with IPRoute() as netlink:
            netlink.flush_addr(index=netlink.link_lookup(ifname="data0")[0])

    two_hosts.inside(two_hosts.a, flush)
    with pytest.raises(UserError, match="data0 has no address"):
        at(two_hosts)


def test_its_networks_but_link_local_ones(two_hosts):
    assert set(map(str, at(two_hosts).networks)) == {"10.201.0.0/24", "fd00:201::/64"}


def test_an_interface_that_is_gone_or_another(two_hosts):
    port = at(two_hosts)

    def ip(*arguments):
        subprocess.run(["ip", "-n", two_hosts.a, *arguments], check=True)

    def there():
        return two_hosts.inside(two_hosts.a, port.is_there)

    assert there()
    ip("link", "set", "data0", "down")
    assert there()  # it may come up again
    ip("link", "set", "data0", "name", "data1")
    assert not there()
    ip("link", "add", "data0", "type", "bridge")
    assert not there()
