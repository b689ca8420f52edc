"""Strict-priority queues of a port: a kernel HTB on its interface, set up by netlink and removed again.

One class has the port's rate; below it there is a leaf a queue, each with a ``prio`` of its own, hardly
any rate of its own and a FIFO. HTB serves what may borrow strictly in the order of ``prio``, so a queue is
served only while every higher one is empty. Packets find their leaf by SO_PRIORITY = the class's handle
(``classid``).
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
from dataclasses import dataclass

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl import TC_H_ROOT

from leveller.errors import UserError

MAX_QUEUES = 8
"""HTB knows eight priorities (TC_HTB_NUMPRIO)."""

_ROOT = 0x1_0000
_PORT_CLASS = 0x1_0100
_LEAF_RATE = 125
"""bytes/s a leaf may send out of turn: next to nothing, yet 9,000 bytes of it fit HTB's 274 s clock."""
_LONGEST_FRAME_SECONDS = 200
"""Where frames are larger still (the loopback's), the leaf's rate is what sends one in so long."""
_LINE_RATE = 12_500_000_000
"""bytes/s of a port that is not limited: more than any interface has, so that the interface itself decides
when the queues build, and they still drain in strict order."""
_BURST_SECONDS = 0.002
"""How much of the rate the port may catch up on when the kernel's timer came late."""


def classid(queue: int, queues: int) -> int:
    """Return the SO_PRIORITY (a class handle, major 1) that steers into ``queue`` of ``queues``."""
    return _ROOT | (queues - queue)


@dataclass(frozen=True)
class PortQueues:
    """The queues to set up on an interface."""

    interface: str
    count: int
    """Number of queues, 1 to 8; queue 0 is the lowest."""
    rate: int | None
    """The port's rate in bit/s of Ethernet frames; None: as fast as the interface is."""
    depth: int
    """Packets that each queue holds; more are dropped at its tail."""


def install(netlink: IPRoute, port: PortQueues) -> None:
    """Set up ``port``'s queues, in place of those that a softswitch killed before has left there.

    Raises UserError when somebody else's qdisc is there, or when the kernel refuses: no root, no HTB in it.
    """
    index = netlink.link_lookup(ifname=port.interface)[0]
    mtu = netlink.get_links(index)[0].get_attr("IFLA_MTU")
    frame = mtu + 18
    rate = (port.rate or 8 * _LINE_RATE) // 8
    burst = max(3 * frame, int(rate * _BURST_SECONDS))
    leaf_rate = max(_LEAF_RATE, frame // _LONGEST_FRAME_SECONDS)
    remove(netlink, port.interface)
    if (other := _root_qdisc(netlink, index)) is not None:
        raise UserError(
            f"interface {port.interface} has a {other} qdisc that is not the switch's",
            f"remove it (tc qdisc del dev {port.interface} root) or limit the port by --port-rate alone",
        )
    try:
        # Whatever the kernel itself sends there (SO_PRIORITY 0) waits in the lowest queue.
        netlink.tc("add", "htb", index, _ROOT, default=classid(0, port.count) & 0xFFFF)
        netlink.tc(
            "add-class",
            "htb",
            index,
            _PORT_CLASS,
            parent=_ROOT,
            rate=rate,
            burst=burst,
            cburst=burst,
            quantum=frame,
        )
        for queue in range(port.count):
            handle = classid(queue, port.count)
            netlink.tc(
                "add-class",
                "htb",
                index,
                handle,
                parent=_PORT_CLASS,
                rate=leaf_rate,
                # Twice the port's rate: only the port's class may hold a queue back, never its own ceiling.
                ceil=2 * rate,
                burst=frame,
                cburst=2 * burst,
                prio=port.count - 1 - queue,
                quantum=frame,
            )
            netlink.tc("add", "pfifo", index, (handle & 0xFFFF) << 20, parent=handle, limit=port.depth)
    except NetlinkError as error:
        remove(netlink, port.interface)
        raise UserError(
            f"the queues of {port.interface} cannot be set up ({error})",
            "run as root on a kernel with HTB (modprobe sch_htb)",
        ) from None


def remove(netlink: IPRoute, interface: str) -> None:
    """Take the switch's queues off ``interface``; the kernel's default returns. Others' are left alone."""
    found = netlink.link_lookup(ifname=interface)
    if found and _root_qdisc(netlink, found[0], handle=_ROOT) == "htb":
        with contextlib.suppress(NetlinkError):  # the interface may go away at the same moment
            netlink.tc("del", index=found[0], handle=_ROOT, root=True)


def _root_qdisc(netlink: IPRoute, index: int, handle: int | None = None) -> str | None:
    """Return the kind of the root qdisc somebody has set up (with this ``handle``); None: the kernel's."""
    for qdisc in netlink.get_qdiscs(index):
        if qdisc["parent"] == TC_H_ROOT and qdisc["handle"] and handle in (None, qdisc["handle"]):
            kind: str = qdisc.get_attr("TCA_KIND")
            return kind
    return None


_TCLASS = struct.Struct("=IHHII BxxxiIII")
"""nlmsghdr and tcmsg: length, type, flags, sequence, port; family, interface, handle, parent, info."""
_ATTRIBUTE = struct.Struct("=HH")
_RTM_GETTCLASS = 42
_RTM_NEWTCLASS = 40
_NLM_F_REQUEST_ECHO = 0x1 | 0x8
"""The kernel answers to the TC multicast group, and to the asker only when told to echo."""
_TCA_STATS2 = 7
_TCA_STATS_QUEUE = 3


class Backlog:
    """Reads how many packets wait in a queue, from the kernel's own count of its HTB class.

    A netlink socket with one packed request, about ten microseconds: a packet's P4 program may ask for it.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE
        )
        self._socket.bind((0, 0))

    def packets(self, index: int, handle: int) -> int:
        """Return the packets waiting in class ``handle`` of interface ``index``; 0 for no such class."""
        self._socket.send(
            _TCLASS.pack(
                _TCLASS.size, _RTM_GETTCLASS, _NLM_F_REQUEST_ECHO, 0, 0, socket.AF_UNSPEC, index, handle, 0, 0
            )
        )
        answer = self._socket.recv(8192)
        if _TCLASS.unpack_from(answer)[1] != _RTM_NEWTCLASS:
            return 0
        stats = _attribute(answer[_TCLASS.size :], _TCA_STATS2)
        queue = _attribute(stats, _TCA_STATS_QUEUE)
        return int.from_bytes(queue[:4], sys.byteorder)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _attribute(data: bytes, kind: int) -> bytes:
    """Return the payload of the first netlink attribute of ``kind`` in ``data``; empty for none."""
    offset = 0
    while offset + _ATTRIBUTE.size <= len(data):
        length, found = _ATTRIBUTE.unpack_from(data, offset)
        if found & 0x3FFF == kind:
            return data[offset + _ATTRIBUTE.size : offset + length]
        offset += max(_ATTRIBUTE.size, (length + 3) & ~3)
    return b""
