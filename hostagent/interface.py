"""The data interface: the NIC whose flows the agent reports and whose link its probes enter."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

import psutil

from leveller.errors import UserError


@dataclass(frozen=True, slots=True)
class DataPort:
    """A network interface and the addresses that the agent speaks for (4 or 16 bytes each)."""

    name: str
    index: int
    mac: bytes
    addresses: tuple[bytes, ...]


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
    for entry in interfaces[name]:
        if entry.family == psutil.AF_LINK:
            mac = bytes.fromhex(entry.address.replace(":", ""))
        elif entry.family in (socket.AF_INET, socket.AF_INET6):
            present.append(ip_address(entry.address.partition("%")[0]))
    for address in wanted:
        if address not in present:
            raise UserError(
                f"agent.addresses: {address} is not an address of {name}",
                f"it has: {', '.join(map(str, present)) or 'none'}",
            )
    addresses = wanted or tuple(address for address in present if not address.is_link_local)
    if not addresses:
        raise UserError(f"agent.interface: {name} has no address", "give it one, or name the data interface")
    return DataPort(name, socket.if_nametoindex(name), mac, tuple(address.packed for address in addresses))
