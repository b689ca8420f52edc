"""Kernel queues for a switch that has none of its own: HTB on each egress port, steered by DSCP.

bmv2's own queue rates count packets and give every queue the whole rate, so its queues never share one
bottleneck. Here the link is an HTB class at the port's rate with one leaf a queue, strict by ``prio``, and
the P4 program tells the kernel the queue through the DSCP that ``level_queue`` rewrites.
"""

from __future__ import annotations

from collections.abc import Sequence

from topo.lossless import FRAME

FLOOR = 1000
"""bit/s guaranteed to a leaf: HTB wants some, and all of it is taken from strictness, so next to none."""


def splice(first: str, second: str) -> list[str]:
    """Return ``tc -batch`` lines that pass whatever comes in at one interface out at the other.

    By copy: a packet as such stays its sender's, counted against the sender's socket, until a queue lets it
    go; a copy does not. (The original goes to the kernel's IP, which has no address here and drops it.)
    """
    return [
        line
        for source, sink in ((first, second), (second, first))
        for line in (
            f"qdisc add dev {source} clsact",
            f"filter add dev {source} ingress u32 match u32 0 0 action mirred egress mirror dev {sink}",
        )
    ]


def commands(interface: str, rate: int, queues: int, depth: int, dscps: Sequence[int]) -> list[str]:
    """Return ``tc -batch`` lines: ``queues`` strict queues on ``interface``, a link of ``rate`` bit/s.

    ``dscps[q]`` is the DSCP that puts a packet into queue ``q``. Queue ``queues`` - 1 is served first and
    takes every other DSCP: control traffic, whose DSCP the program leaves alone. Each queue holds ``depth``
    packets.
    """
    burst = f"burst {2 * FRAME} cburst {2 * FRAME} quantum {FRAME}"
    lines = [
        f"qdisc add dev {interface} root handle 1: htb default {0x10 + queues - 1:x}",
        f"class add dev {interface} parent 1: classid 1:1 htb rate {rate}bit ceil {rate}bit {burst}",
    ]
    for queue in range(queues):
        minor = 0x10 + queue
        lines += [
            f"class add dev {interface} parent 1:1 classid 1:{minor:x} htb rate {FLOOR}bit ceil {rate}bit "
            f"prio {queues - 1 - queue} {burst}",
            f"qdisc add dev {interface} parent 1:{minor:x} pfifo limit {depth}",
        ]
        if queue == queues - 1:
            continue
        for preference, protocol, match in ((1, "ip", "ip dsfield"), (2, "ipv6", "ip6 priority")):
            lines.append(
                f"filter add dev {interface} parent 1: protocol {protocol} prio {preference} "
                f"u32 match {match} {dscps[queue] << 2:#x} 0xfc flowid 1:{minor:x}"
            )
    return lines
