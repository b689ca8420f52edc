"""What the switch programs of p4src are tried with: writes as the controller's, and frames of every kind."""

from __future__ import annotations

import random
from collections.abc import Iterable

from tests.softswitch.golden import frames
from tests.softswitch.golden.parts import Packet, Write, default, fields, insert


def leveller(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    """The switch program: a host at port 1, switches behind 2 to 4, a host at 5 and more."""
    writes = [insert("edge_port", [port], "fabric_facing") for port in (2, 3, 4)]
    writes += [insert("edge_port", [1], "host_facing")]
    writes += [insert("int_sink", [port], "relay") for port in (2, 3, 4)]
    writes += [
        insert("ipv4_lpm", [[0x0A000200, 24]], "set_nhop", 2, 0x020000000002),
        insert("ipv4_lpm", [[0x0A000300, 24]], "set_ecmp", 1, 2),
        insert("ipv4_lpm", [[0x0A000400, 24]], "set_nhop", 5, 0x020000000005),
        insert("ipv4_lpm", [[0x0A000000, 8]], "drop"),
        insert("ipv6_lpm", [[0xFD00 << 112, 16]], "set_nhop", 2, 0x020000000002),
        insert("ipv6_lpm", [[0xFD00 << 112 | 3, 128]], "set_nhop", 6, 0x020000000006),
        insert("ecmp", [1, 0], "set_nhop", 3, 0x020000000003),
        insert("ecmp", [1, 1], "set_nhop", 4, 0x020000000004),
        default("ecmp_seed", "set_seed", 12345),
        default("int_node", "set_int_node", 77),
        default("default_level", "set_default_level", 1, 7),
        default("active_bank", "set_bank", 1),
        default("burst_gap", "set_burst_gap", 0xFFFFFFFF),  # longer than any test: the clock plays no part
    ]
    writes += [insert("level_queue", [level], "set_queue", level, 8 + level, level % 2) for level in range(8)]
    for n in range(7):
        key = (6 if n % 2 else 17, 5000 + n, 80 if n % 2 else 6000)
        to = 0x0A000201 if n < 4 else 0x0A000301
        writes += [
            insert("flow_group_v4", [frames.FIRST_V4, to, *key], "set_group", n, n),
            insert("flow_group_v6", [frames.FIRST_V6, 0xFD00 << 112 | 2, *key], "set_group", n, 10 + n),
            insert("group_level", [1, n], "set_level", n, 0, 0),
            insert("group_level", [0, n], "set_level", 6 - n, 0, 0),
        ]
    writes += [
        insert("flow_group_qp_v4", [frames.FIRST_V4, 0x0A000201, 17], "set_group", 2, 20),
        insert("flow_group_qp_v6", [frames.FIRST_V6, 0xFD00 << 112 | 2, 18], "set_group", 3, 21),
    ]
    made = [(g.choice([1, 1, 1, 2, 3, 9]), frames.frame(g)) for _ in range(500)]
    outs = [
        (510, fields((9, port), (7, 0)) + frames.frame(g)) for port in (1, 2, 9, 300, 511) for _ in range(3)
    ]
    return writes, made + outs


def l2(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    """The L2 switch with the level control: the same traffic, by MAC address."""
    writes, packets = leveller(g)
    kept = [w for w in writes if not str(w[1][0]).startswith(("ipv", "ecmp"))]
    known, flooded, unknown = frames.ROUTER, bytes.fromhex("ffffffffffff"), bytes.fromhex("02000000bbbb")
    kept += [
        insert("mac", [int.from_bytes(known, "big")], "forward", 2),
        insert("mac", [int.from_bytes(flooded, "big")], "flood", 1),
        ("replicate", [1, [[1, 1], [2, 2], [3, 3]]]),
    ]
    made = [
        (port, g.choice([known, known, known, flooded, unknown]) + packet[6:])
        for port, packet in list(packets)[:200]
        if len(packet) >= 6
    ]
    return kept, made
