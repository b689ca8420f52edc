"""The link-layer address a flow's packets are sent to: asked of the kernel, which sends them there.

Layouts are those of ``linux/rtnetlink.h`` and ``linux/neighbour.h``.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from ipaddress import ip_address

from hostagent.rtnetlink import DUMP, REQUEST, ask, attribute, attributes, connect

_RTM_GETROUTE, _RTM_GETNEIGH = 26, 30
_RTA_DST, _RTA_SRC, _RTA_OIF, _RTA_GATEWAY, _RTA_VIA = 1, 2, 4, 5, 18
_NDA_DST, _NDA_LLADDR = 1, 2

_ROUTE = struct.Struct("=BBBBBBBBI")  # rtmsg: family, destination and source length, ..
_NEIGHBOUR = struct.Struct("=BxxxiHBB")  # ndmsg: family, interface, state, flags, type


class NoNextHopError(Exception):
    """The kernel does not know where the packet would go; the text says what is missing."""


def resolve(source: bytes, destination: bytes, interface: int) -> bytes:
    """Return the MAC address of the next hop from ``source`` to ``destination``.

    Packets are to leave by ``interface`` (its index). Raises NoNextHopError when there is no route, it
    leaves elsewhere, or the next hop's address is not known (that of a flow that lives is known), and OSError
    when the kernel refuses.
    """
    target = str(ip_address(destination))
    with connect() as netlink:
        try:
            out, via = _route(netlink, source, destination)
        except OSError as error:
            raise NoNextHopError(f"no route to {target} ({error.strerror or error})") from None
        if out != interface:
            raise NoNextHopError(f"the route to {target} leaves by interface {out}, not by {interface}")
        for neighbour, mac in _neighbours(netlink, via, interface):
            if neighbour == via:
                return mac
    raise NoNextHopError(f"the MAC address of the next hop {ip_address(via)} to {target} is not known")


def _route(netlink: socket.socket, source: bytes, destination: bytes) -> tuple[int, bytes]:
    """Return the interface by which packets leave, and the address of the next hop."""
    body = _ROUTE.pack(_family(destination), 8 * len(destination), 8 * len(source), 0, 0, 0, 0, 0, 0)
    body += attribute(_RTA_DST, destination) + attribute(_RTA_SRC, source)
    (answer,) = ask(netlink, _RTM_GETROUTE, REQUEST, body)
    found = attributes(answer[_ROUTE.size :])
    (out,) = struct.unpack("=I", found.get(_RTA_OIF, bytes(4)))
    # IPv4 may go by an IPv6 gateway: that is an RTA_VIA, a family and an address.
    return out, found.get(_RTA_GATEWAY) or found.get(_RTA_VIA, b"")[2:] or destination


def _neighbours(netlink: socket.socket, like: bytes, interface: int) -> Iterator[tuple[bytes, bytes]]:
    """Return address and MAC address of the neighbours at ``interface``, of the family of ``like``."""
    body = _NEIGHBOUR.pack(_family(like), 0, 0, 0, 0)
    for answer in ask(netlink, _RTM_GETNEIGH, REQUEST | DUMP, body):
        _, index, _, _, _ = _NEIGHBOUR.unpack_from(answer)
        found = attributes(answer[_NEIGHBOUR.size :])
        mac = found.get(_NDA_LLADDR, b"")
        if index == interface and len(mac) == 6:
            yield found.get(_NDA_DST, b""), mac


def _family(address: bytes) -> int:
    return socket.AF_INET if len(address) == 4 else socket.AF_INET6
