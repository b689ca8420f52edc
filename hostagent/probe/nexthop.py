"""The link-layer address a flow's packets are sent to: asked of the kernel, which sends them there.

Spoken over a plain socket because pyroute2 takes ten megabytes of an agent that is to be a small guest.
Layouts are those of ``linux/rtnetlink.h`` and ``linux/neighbour.h``.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from ipaddress import ip_address

_NETLINK_ROUTE = 0
_RTM_GETROUTE, _RTM_GETNEIGH = 26, 30
_NLM_F_REQUEST, _NLM_F_DUMP = 0x1, 0x300
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_RTA_DST, _RTA_SRC, _RTA_OIF, _RTA_GATEWAY, _RTA_VIA = 1, 2, 4, 5, 18
_NDA_DST, _NDA_LLADDR = 1, 2

_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port id
_ROUTE = struct.Struct("=BBBBBBBBI")  # rtmsg: family, destination and source length, ..
_NEIGHBOUR = struct.Struct("=BxxxiHBB")  # ndmsg: family, interface, state, flags, type
_ATTRIBUTE = struct.Struct("=HH")  # length, type


class NoNextHopError(Exception):
    """The kernel does not know where the packet would go; the text says what is missing."""


def resolve(source: bytes, destination: bytes, interface: int) -> bytes:
    """Return the MAC address of the next hop from ``source`` to ``destination``.

    Packets are to leave by ``interface`` (its index). Raises NoNextHopError when there is no route, it
    leaves elsewhere, or the next hop's address is not known (that of a flow that lives is known), and OSError
    when the kernel refuses.
    """
    target = str(ip_address(destination))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_ROUTE) as netlink:
        netlink.settimeout(1.0)
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
    body += _attribute(_RTA_DST, destination) + _attribute(_RTA_SRC, source)
    (answer,) = _ask(netlink, _RTM_GETROUTE, _NLM_F_REQUEST, body)
    found = _attributes(answer[_ROUTE.size :])
    (out,) = struct.unpack("=I", found.get(_RTA_OIF, bytes(4)))
    # IPv4 may go by an IPv6 gateway: that is an RTA_VIA, a family and an address.
    return out, found.get(_RTA_GATEWAY) or found.get(_RTA_VIA, b"")[2:] or destination


def _neighbours(netlink: socket.socket, like: bytes, interface: int) -> Iterator[tuple[bytes, bytes]]:
    """Return address and MAC address of the neighbours at ``interface``, of the family of ``like``."""
    body = _NEIGHBOUR.pack(_family(like), 0, 0, 0, 0)
    for answer in _ask(netlink, _RTM_GETNEIGH, _NLM_F_REQUEST | _NLM_F_DUMP, body):
        _, index, _, _, _ = _NEIGHBOUR.unpack_from(answer)
        found = _attributes(answer[_NEIGHBOUR.size :])
        mac = found.get(_NDA_LLADDR, b"")
        if index == interface and len(mac) == 6:
            yield found.get(_NDA_DST, b""), mac


def _ask(netlink: socket.socket, kind: int, flags: int, body: bytes) -> list[bytes]:
    """Return the bodies of the kernel's answers. Raises OSError."""
    netlink.send(_HEADER.pack(_HEADER.size + len(body), kind, flags, 1, 0) + body)
    answers: list[bytes] = []
    while True:
        data = netlink.recv(1 << 16)
        offset = 0
        while offset + _HEADER.size <= len(data):
            length, answer, _, _, _ = _HEADER.unpack_from(data, offset)
            inside = data[offset + _HEADER.size : offset + length]
            if answer == _NLMSG_ERROR:
                code = -struct.unpack_from("=i", inside)[0]
                raise OSError(code, os.strerror(code))
            if answer == _NLMSG_DONE:
                return answers
            answers.append(inside)
            if length < _HEADER.size:
                raise OSError(f"rtnetlink sent a message of {length} bytes")
            offset += (length + 3) & ~3
        if not flags & _NLM_F_DUMP:
            return answers


def _attribute(kind: int, value: bytes) -> bytes:
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value


def _attributes(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    offset = 0
    while offset + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size:
            break
        found[kind] = data[offset + _ATTRIBUTE.size : offset + length]
        offset += (length + 3) & ~3
    return found


def _family(address: bytes) -> int:
    return socket.AF_INET if len(address) == 4 else socket.AF_INET6
