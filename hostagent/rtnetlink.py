"""Asking the kernel's routing netlink, which knows of interfaces, routes and neighbours.

Spoken over a plain socket because pyroute2 takes ten megabytes of an agent that is to be a small guest.
Layouts are those of ``linux/netlink.h`` and ``linux/rtnetlink.h``.
"""

from __future__ import annotations

import os
import socket
import struct

REQUEST, DUMP = 0x1, 0x300

_NETLINK_ROUTE = 0
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port id
_ATTRIBUTE = struct.Struct("=HH")  # length, type
_TYPE = 0x3FFF  # without the bits that say nested or in network order


def connect() -> socket.socket:
    """Return a socket to the routing netlink of the calling thread's network namespace. Raises OSError."""
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_ROUTE)
    netlink.settimeout(1.0)
    return netlink


def ask(netlink: socket.socket, kind: int, flags: int, body: bytes) -> list[bytes]:
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
        if not flags & DUMP:
            return answers


def attribute(kind: int, value: bytes) -> bytes:
    """Return an attribute of up to four bytes, or of a multiple of four."""
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value


def attributes(data: bytes) -> dict[int, bytes]:
    """Read attributes, by type."""
    found: dict[int, bytes] = {}
    offset = 0
    while offset + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size:
            break
        found[kind & _TYPE] = data[offset + _ATTRIBUTE.size : offset + length]
        offset += (length + 3) & ~3
    return found
