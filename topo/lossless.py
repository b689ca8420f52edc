"""The 'lossless' profile: what makes TCP in a lab behave like a lossless training network.

A flow that strict priority starves must neither lose packets nor be punished by its own timers: all that
it may have in flight (the window) fits into the switches' queues, its retransmission timer outlasts a
starvation of seconds, its congestion window outlasts a compute phase, and a flow whose level changes may
see its packets overtake each other. All of it is per network namespace or per route.
"""

from __future__ import annotations

from topo.fabric import ROUTER_MAC, Host

WINDOW = 2 * 0xFFFF
"""Bytes that a TCP flow may have in flight: 128 KiB, the most that a window scale of 1 can announce.

Linux forgets a route's window clamp once it has seen how full packets are (since 6.6), but never the scale
that it chose for that clamp. One byte more would mean a scale of 2, and twice the window.
"""

SEGMENT = WINDOW // 15
"""Payload bytes of a full frame: jumbo, because the switches are programs and pay per packet.

A whole number of them makes up a window: else flows settle on different mixtures of full and partial
frames, and on shares that differ by some per cent for good.
"""

MTU = SEGMENT + 20 + 20
"""Bytes of IP packet: payload, IPv4 and TCP without options."""

FRAME = MTU + 14
"""Bytes of a full Ethernet frame, as a queue counts them."""

SLACK = 0.985
"""Share of the line that an all-reduce may count on: the rest is timers and spurious retransmissions.

Without it the worked examples stand on a knife's edge: a job that has to fit exactly into another's
compute phases misses them by a millisecond and waits for one phase more.
"""

EFFICIENCY = SLACK * SEGMENT / FRAME
"""Payload bytes per byte that a line could carry."""

QUEUE_DEPTH = 1000
"""Packets a switch queue must hold: the windows of some 60 flows, and their pure ACKs."""

SYSCTLS = {
    "net.ipv4.tcp_congestion_control": "reno",  # the default may be bbr, which paces by its own model
    "net.ipv4.tcp_slow_start_after_idle": "0",  # a compute phase is not congestion
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_early_retrans": "0",  # no tail-loss probes: a starved tail is not lost
    "net.ipv4.tcp_reordering": "127",  # a promoted flow overtakes itself
    "net.ipv4.tcp_ecn": "0",
    "net.ipv4.tcp_timestamps": "0",  # what was overtaken looks old by its stamp and is discarded
    "net.ipv4.tcp_moderate_rcvbuf": "0",  # it would raise the window above the route's, flow by flow
    # Memory for a whole window out of order: a jumbo frame is charged twice its bytes.
    "net.ipv4.tcp_rmem": f"4096 {8 * WINDOW} {32 * WINDOW}",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv6.conf.all.accept_dad": "0",
    "net.ipv6.conf.default.accept_dad": "0",
    "net.ipv6.conf.default.router_solicitations": "0",
    "net.ipv6.conf.default.disable_ipv6": "0",
    "net.ipv6.conf.all.disable_ipv6": "0",
}
"""Settings of a host's network namespace."""

ROUTE = f"rto_min 3s window {WINDOW} initcwnd {WINDOW // SEGMENT} initrwnd {WINDOW // SEGMENT}"
"""Attributes of a host's default route."""

OFFLOADS = "rx off tx off sg off tso off gso off gro off"
"""What ethtool switches off at both ends of a data link, for switches that see frames as they are."""


def host_script(host: Host) -> str:
    """Return the shell script that sets up ``host``'s data interface, inside the host."""
    interface = host.interface
    gateway4 = host.ipv4.exploded.rsplit(".", 1)[0] + ".254"
    gateway6 = "fe80::1"
    lines = [f"echo '{value}' > /proc/sys/{key.replace('.', '/')}" for key, value in SYSCTLS.items()]
    lines += [
        "ip link set lo up",
        f"ethtool -K {interface} {OFFLOADS} >/dev/null",
        # No link-local address: the kernel would announce it to the switch, time and again.
        f"ip link set {interface} down",
        f"ip link set {interface} address {host.mac} mtu {MTU} addrgenmode none",
        f"ip link set {interface} up",
        # A /32, so that even a neighbour at the same switch is reached through it and nobody needs ARP.
        f"ip address add {host.ipv4}/32 dev {interface}",
        f"ip neighbour add {gateway4} lladdr {ROUTER_MAC} nud permanent dev {interface}",
        f"ip route add default via {gateway4} dev {interface} onlink {ROUTE}",
        f"ip -6 address add {host.ipv6}/128 dev {interface} nodad",
        f"ip -6 neighbour add {gateway6} lladdr {ROUTER_MAC} nud permanent dev {interface}",
        f"ip -6 route add default via {gateway6} dev {interface} onlink {ROUTE}",
    ]
    return "set -e\n" + "\n".join(lines)
