"""Which interfaces of a container lead to the host: a tenant can make any others, with any addresses.

Whoever may make a user namespace may make a network namespace in it, and give a device there the address of
another host. What a tenant cannot make is a device with one end in the host's namespace, or a physical one:
that takes rights over the host's. Layouts are those of ``linux/if_link.h`` and ``linux/net_namespace.h``.
"""

from __future__ import annotations

import socket
import struct

from hostagent.rtnetlink import DUMP, REQUEST, ask, attribute, attributes, connect

_RTM_GETLINK, _RTM_GETNSID = 18, 90
_IFF_LOOPBACK = 0x8
_IFLA_LINKINFO, _IFLA_LINK_NETNSID = 18, 37
_IFLA_INFO_KIND = 1
_NETNSA_NSID, _NETNSA_FD = 1, 3
_LINK = struct.Struct("=BxHiII")  # ifinfomsg: family, type, index, flags, change
_NUMBER = struct.Struct("=i")


def attached(host: int) -> frozenset[int]:
    """Return the indices of the calling thread's interfaces that lead to the namespace open as ``host``.

    Those are physical ones, and such as macvlan, ipvlan, VLAN and veth whose lower device or other end is
    there. Raises OSError.
    """
    with connect() as netlink:
        number = _number(netlink, host)
        answers = ask(netlink, _RTM_GETLINK, REQUEST | DUMP, _LINK.pack(0, 0, 0, 0, 0))
    indices: set[int] = set()
    for answer in answers:
        _, _, index, flags, _ = _LINK.unpack_from(answer)
        found = attributes(answer[_LINK.size :])
        is_physical = _IFLA_INFO_KIND not in attributes(found.get(_IFLA_LINKINFO, b""))
        leads_there = number >= 0 and found.get(_IFLA_LINK_NETNSID) == _NUMBER.pack(number)
        if not flags & _IFF_LOOPBACK and (is_physical or leads_there):
            indices.add(index)
    return frozenset(indices)


def _number(netlink: socket.socket, host: int) -> int:
    """Return what the calling thread's namespace calls ``host``; below 0: nothing here has to do with it."""
    body = bytes(4) + attribute(_NETNSA_FD, _NUMBER.pack(host))
    (answer,) = ask(netlink, _RTM_GETNSID, REQUEST, body)
    return int(_NUMBER.unpack(attributes(answer[4:])[_NETNSA_NSID])[0])
