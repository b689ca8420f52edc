"""The data interface: the NIC whose flows the agent reports and whose link its probes enter."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import psutil

from leveller.errors import UserError


@dataclass(frozen=True, slots=True)
class DataPort:
    """A network interface and the addresses that the agent speaks for (4 or 16 bytes each)."""

    name: str
    index: int
    mac: bytes
    addresses: tuple[bytes, ...]
    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    """The networks that its addresses are in, but for link-local ones."""

    def is_there(self) -> bool:
        """Say whether the interface is still there, and still the same one."""
        try:
            return socket.if_nametoindex(self.name) == self.index
        except OSError:
            return False


def find(name: str, wanted: tuple[IPv4Address | IPv6Address, ...]) -> DataPort:
    """Look up interface ``name`` and check that it has the ``wanted`` addresses.

    Where none are wanted, the agent speaks for all that it has. Raises UserError where there is no such
    interface, no such address on it, or no address at all. Link-local addresses are left out: no flow
    between hosts of a routed fabric has one.
    """
    interfaces = psutil.net_if_addrs()
    if name not in interfaces:
        raise UserError(
            f"agent.interface: there is no interface {name}", f"give one of: {', '.join(sorted(interfaces))}"
        )
    mac, present = bytes(6), []
    networks: list[IPv4Network | IPv6Network] = []
    for entry in interfaces[name]:
        if entry.family == psutil.AF_LINK:
            mac = bytes.fromhex(entry.address.replace(":", ""))
        elif entry.family in (socket.AF_INET, socket.AF_INET6):
            address = ip_address(entry.address.partition("%")[0])
            present.append(address)
            if entry.netmask and not address.is_link_local:
                networks.append(_network(address, entry.netmask))
    for address in wanted:
        if address not in present:
            raise UserError(
                f"agent.addresses: {address} is not an address of {name}",
                f"it has: {', '.join(map(str, present)) or 'none'}",
            )
    addresses = wanted or tuple(address for address in present if not address.is_link_local)
    if not addresses:
        raise UserError(f"agent.interface: {name} has no address", "give it one, or name the data interface")
    packed = tuple(address.packed for address in addresses)
    return DataPort(name, socket.if_nametoindex(name), mac, packed, tuple(networks))


def _network(address: IPv4Address | IPv6Address, netmask: str) -> IPv4Network | IPv6Network:
    # ipaddress takes a netmask for a prefix length in IPv4 only.
    length = int(ip_address(netmask)).bit_count()
    return ip_network(f"{address}/{length}", strict=False)
