"""The link-layer address a flow's packets are sent to: asked of the kernel, which sends them there."""

from __future__ import annotations

import socket
from ipaddress import ip_address

from pyroute2 import AsyncIPRoute
from pyroute2.netlink.exceptions import NetlinkError


class NoNextHopError(Exception):
    """The kernel does not know where the packet would go; the text says what is missing."""


async def resolve(source: bytes, destination: bytes, interface: int) -> bytes:
    """Return the MAC address of the next hop from ``source`` to ``destination``.

    Packets are to leave by ``interface`` (its index). Raises NoNextHopError when there is no route, it
    leaves elsewhere, or the next hop's address is not known (that of a flow that lives is known).
    """
    target = str(ip_address(destination))
    family = socket.AF_INET if len(destination) == 4 else socket.AF_INET6
    async with AsyncIPRoute() as netlink:
        try:
            (route,) = await netlink.route("get", family=family, dst=target, src=str(ip_address(source)))
        except NetlinkError as error:
            raise NoNextHopError(f"no route to {target} ({error.args[-1]})") from None
        if route.get("oif") != interface:
            raise NoNextHopError(
                f"the route to {target} leaves by interface {route.get('oif')}, not by {interface}"
            )
        via = route.get("gateway") or (route.get("via") or {}).get("addr") or target
        family = socket.AF_INET6 if ":" in via else socket.AF_INET  # IPv4 may go by an IPv6 gateway
        async for neighbour in await netlink.neigh("dump", family=family, ifindex=interface):
            mac = neighbour.get("lladdr")
            if mac and neighbour.get("ifindex") == interface and neighbour.get("dst") == via:
                return bytes.fromhex(mac.replace(":", ""))
    raise NoNextHopError(f"the MAC address of the next hop {via} to {target} is not known")
