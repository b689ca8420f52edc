"""What the programs of this folder are tried with: what is written to the switch, and packets.

Each program has a function of its name: it returns the writes (a method of ``Ours`` and ``Bmv2`` with its
arguments) and the packets, as (port, bytes). Packets are random, by a fixed seed, within what the program can
tell apart; each is also sent cut short somewhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from tests.softswitch.golden.fabric_inputs import l2, leveller
from tests.softswitch.golden.parts import Packet, Write, default, fields, insert, numbered, on_port, packed


def stacks(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    def packet(what: int, count: int) -> bytes:
        items = b"".join(
            packed("BBH", i == count - 1, g.randrange(256), g.randrange(65536)) for i in range(count)
        )
        # An index out of bounds ends bmv2.
        index = g.randrange(max(1, min(count, 4)))
        return packed("BBBB", what, index, count, g.randrange(256)) + items + b"rest"

    return [], on_port(
        (
            packet(what, count)
            for what in range(10)
            for count in (0, 1, 2, 4, 5)
            if count or what not in (1, 2)
        ),
        keep=24,
    )


def unions(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    tails = [b"\xff\x01\x02\x03\x04\x05", b"\x11\x22\x33\x44\x55"]
    return [], on_port(
        (packed("BB", kind, then) + tail for kind in range(4) for then in range(5) for tail in tails), keep=2
    )


def wide(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    def number(width: int) -> tuple[int, int]:
        edges = [0, 1, (1 << width) - 1, 1 << width - 1, (1 << width - 1) - 1]
        return width, g.choice([*edges, g.getrandbits(width), g.getrandbits(width)])

    return [], on_port(
        (fields(*map(number, (1, 7, 33, 33, 6, 64, 128, 64))) + b"tail" for _ in range(40)), keep=63
    )


def ahead(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    def tag() -> bytes:
        kinds = [0, 1, 2, 5, 9, 10, 0x80, 0x8F, 0x90, 0xFF]
        return packed("BBH", g.choice(kinds), g.randrange(6), g.choice([0, 50, 99, 100, 0x7FFF, 0x8000, 15]))

    return [], on_port(tag() + tag() + tag() + g.randbytes(g.randrange(14)) for _ in range(45))


def tlv(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    def packet() -> bytes:
        options = b""
        for _ in range(g.randrange(5)):
            size = g.choice([0, 1, 2, 2, 4, 6, 10, 31, 33])
            options += packed("BB", g.choice([1, 2, 3]), size) + g.randbytes(max(0, size - 2))
        options += bytes(g.choice([0, 0, 1]))
        options += bytes(-len(options) % 4)
        words = min(15, len(options) // 4 + 1)
        head = packed("BBH", g.choice([4, 4, 4, 4, 5]) << 4 | words, g.randrange(3), len(options))
        return head + options + b"payload"

    return [], on_port(packet() for _ in range(50))


def mirror(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    writes: list[Write] = [
        ("replicate", [1, [[4, 1], [5, 2], [4, 3]]]),
        ("clone", [1, [[6, 0]]]),
        ("clone", [2, [[7, 5], [8, 6]]]),
    ]
    return writes, on_port(
        (
            packed("BBBB", ingress, egress, g.randrange(20), 3) + b"payload"
            for ingress in range(7)
            for egress in range(4)
        ),
        keep=4,
    )


def again(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    return [], on_port(
        (
            packed("BBB", resubmits, rounds, tag) + b"payload"
            for resubmits in range(4)
            for rounds in range(4)
            for tag in (7, 0xFE, 0xFF)
        ),
        keep=3,
    )


def learn(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    def packet(src: int, kind: int) -> bytes:
        wide = g.getrandbits(128)  # no two packets alike: bmv2 does not learn twice
        return fields((48, src), (8, kind), (1, g.getrandbits(1)), (7, g.getrandbits(7)), (128, wide))

    sources = [[5, 6, g.getrandbits(48), g.getrandbits(48)] for _ in range(6)]
    packets = ((1 + n % 2, packet(src, n % 3)) for n in range(6) for src in sources[n])
    return [insert("known", [5], "NoAction"), insert("known", [6], "learn_large")], packets


def cells(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    writes = [
        insert("kinds", [[0, 1]], "note", 3, priority=1),
        insert("kinds", [[0x10, 0xF0]], "note", 200, priority=2),
        insert("kinds", [[0x20, 0xFF]], "NoAction", priority=3),
    ]
    return writes, on_port(
        (
            fields(
                (8, g.choice([0, 1, 2, 7, 8, 9, 15, 255])),
                (8, g.choice([0, 1, 0x10, 0x11, 0x20])),
                (32, g.getrandbits(32)),
                (16, g.getrandbits(16)),
                (128, g.getrandbits(128)),
                (8, 0),
            )
            + bytes(g.randrange(20))
            for _ in range(45)
        ),
        keep=26,
    )


def spread(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    writes: list[Write] = [("member", ["wide_spread", n, "go", [n * 11]]) for n in range(1, 6)]
    writes += [("member", ["wide_spread", 6, "stay", []]), ("member", ["wide_spread", 7, "other", [7]])]
    writes += [("member", ["odd_spread", n, "go", [n * 100]]) for n in range(1, 4)]
    writes += [("member", ["odd_spread", 4, "other", [4]])]
    writes += [("member", ["shared_profile", 1, "go", [999]]), ("member", ["shared_profile", 2, "stay", []])]
    writes += [
        ("group", ["wide_spread", 1, [1, 2, 3, 4, 5]]),
        ("group", ["wide_spread", 2, [5, 6, 7]]),
        ("group", ["odd_spread", 1, [1, 2, 3, 4]]),
    ]
    writes += [
        insert("first", [9], {"group": 1}),
        insert("first", [10], {"group": 2}),
        insert("first", [11], {"member": 7}),
        insert("first", [12], {"member": 6}),
        insert("second", [[0x10, 4]], {"group": 1}),
        insert("second", [[0x11, 8]], {"member": 4}),
        insert("third", [[0x1, 0x3]], {"member": 1}, priority=4),
        insert("third", [[0x3, 0x3]], {"member": 2}, priority=9),
    ]
    return writes, on_port(
        (
            fields(
                (8, g.choice([8, 9, 9, 10, 10, 11, 12])),
                (32, g.getrandbits(32)),
                (32, g.getrandbits(32)),
                (8, g.choice([6, 0x10, 0x11, 0x1F])),
                (9, g.getrandbits(9)),
                (7, 0),
                (16, 0),
                (8, 0),
            )
            for _ in range(60)
        ),
        keep=15,
    )


def sums(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    def packet() -> bytes:
        kind, odd, body = g.choice([0, 1, 3, 4, 5]), g.randrange(256), g.randbytes(3)
        options = b""
        if kind == 1:
            size = g.choice([0, 1, 2, 7, 32, 33])
            options = packed("H", size) + g.randbytes(min(size, 34))
        payload = g.randbytes(g.randrange(12))
        whole = packed("BB", kind, odd) + body + b"\0"
        total = sum(int.from_bytes(whole[i : i + 2], "big") for i in range(0, 6, 2))
        good = 0xFFFF - (total % 0xFFFF or (0xFFFF if total else 0))
        crossed = body + b"\x5a\x5a" + payload
        crossed += bytes(len(crossed) % 2)
        over = sum(int.from_bytes(crossed[i : i + 2], "big") for i in range(0, len(crossed), 2))
        with_payload = 0xFFFF - (over % 0xFFFF or (0xFFFF if over else 0))
        head = (
            packed("BBH", kind, odd, g.choice([good, good, 0, 0xFFFF])) + body + packed("B", g.randrange(256))
        )
        return head + packed("IHH", 0, g.choice([with_payload, with_payload, 1]), 7) + options + payload

    return [], on_port((packet() for _ in range(60)), keep=16)


def ways(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    writes = [
        insert("one", [1], "mark", 0x4B),
        insert("one", [2], "twice", 0x50),
        insert("one", [3], "stop"),
        insert("one", [4], "NoAction"),
        insert("two", [[4, 4], 1], "twice", 0x70, priority=1),
        insert("two", [[5, 0xFF], 3], "mark", 0x71, priority=7),
        insert("three", [[0, 6]], "mark", 0x72),
        insert("three", [[4, 8]], "stop"),
        insert("last", [[0, 1]], "fade", priority=1),
        insert("last", [[0x30, 0x7F]], "fade", priority=2),
    ]
    return writes, on_port(
        (
            packed("BBBQ", a, b, c, 0)
            for a in range(6)
            for b in (0, 0x30, 0x40, 0x7E, 0xFF)
            for c in (1, 3, 8, 0xF0)
        ),
        keep=11,
    )


def fixed(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    addresses = [0x0A000001, 0x0A010001, 0x0A010203, 0x0B000000, 0]
    return [], on_port(
        (
            packed("BHIBBBB", a, b, g.choice(addresses), 0xEE, 0xEE, 0xEE, 0xEE)
            for a in (1, 2, 3, 9, 0x10, 0x15, 0xFF)
            for b in (0, 55, 100, 0x0100, 0x0101, 0xFFFF)
        ),
        keep=11,
    )


def keys(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    top = 0xFD00 << 112
    writes = [
        insert("sums", [10, 4], "mark", 0x41),
        insert("sums", [4, 4], "mark", 0x4F),
        insert("wides", [[top, 16]], "mark", 0x42),
        insert("wides", [[top | 7, 128]], "mark", 0x43),
        insert("wides", [[0, 1]], "mark", 0x44),
        insert("slices", [[0xFD000000, 0xFF000000], [0, 7]], "mark", 0x45, priority=3),
        insert("slices", [[0, 0], [5, 9]], "mark", 0x46, priority=1),
        insert("states", [1, 1, 2], "mark", 0x47),
        insert("states", [0, 0, 2], "mark", 0x48),
        insert("signs", [[0x80, 0x80], 0x21], "mark", 0x49, priority=2),
        insert("signs", [[0xFF, 0xFF], 0x20], "mark", 0x4A, priority=5),
        insert("absent", [0], "mark", 0x4B),
        insert("absent", [0x1234], "mark", 0x4C),
        insert("maybe", [4, [7, 16], [0, 255]], "mark", 0x4D, priority=2),
        insert("maybe", [None, [0, 12], [6, 6]], "mark", 0x4E, priority=1),
        default("none", "mark", 0x7E),
    ]
    return writes, on_port(
        (
            fields(
                (8, g.choice([4, 4, 3, 0xFA])),
                (8, g.choice([6, 6, 7, 0])),
                (128, g.choice([top | 7, top | 0xF00009, 7, g.getrandbits(128)])),
                (8, g.choice([0, 0x7F, 0x80, 0xFF])),
                (4, g.choice([2, 2, 3])),
                (4, g.choice([0, 1])),
                (64, 0),
            )
            + g.choice([b"\x12\x34", b"\0\0", b"\x12\x35"])
            for _ in range(60)
        ),
        keep=28,
    )


def types(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    return [], on_port(
        (
            packed("BBHH", kind, number, g.randrange(65536), g.randrange(65536)) + b"end"
            for kind in (1, 2, 3, 0x80)
            for number in (0, 1, 2, 3, 9, 10, 255)
        ),
        keep=6,
    )


def tunnel(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    writes = [
        insert("forward", [1], "push", 0xABCDE, 5),
        insert("forward", [2], "pop"),
        insert("forward", [3], "swap", 0x12345),
        insert("forward", [4], "wrap"),
        insert("forward", [5], "unwrap"),
        insert("forward", [6], "move"),
        insert("forward", [7], "strip"),
    ]

    def packet(number: int, kind: int) -> bytes:
        size = g.choice([0, 1, 5, 16, 17])
        inner = packed("BB", size, g.randrange(256)) + g.randbytes(min(size, 18))
        middle = {
            0: b"",
            1: fields((20, 7), (3, 1), (1, 1), (8, g.choice([1, 9]))),
            2: fields((20, 7), (3, 1), (1, 0), (8, 2)) + fields((20, 8), (3, 2), (1, 1), (8, 3)),
            3: b"".join(fields((20, n), (3, n), (1, n == 3), (8, n + 1)) for n in range(4)),
            4: packed("HH", 0x55, 0x0800),
            5: packed("HH", 0x66, 0x9999),
        }[kind]
        following = [0x0800, 0x8847, 0x8847, 0x8847, 0x6558, 0x6558][kind]
        return packed("HH", number, following) + middle + inner + b"payload"

    return writes, on_port(packet(number, kind) for number in range(8) for kind in range(6))


def intrinsic(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    writes: list[Write] = [("replicate", [1, [[4, 1], [5, 2]]])]
    return writes, on_port(
        (packed("BB", what, port) + bytes(g.randrange(9)) for what in range(13) for port in (0, 3, 255)),
        1,
        7,
        509,
        keep=2,
    )


def order(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    return [], on_port(
        (
            packed("BB", kind, value) + g.randbytes(g.choice([2, 5, 8]))
            for kind in range(6)
            for value in range(4)
        ),
        keep=2,
    )


def words(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    return [], on_port(
        (
            packed("BHIB", g.randrange(256), g.choice([0, 1, 9, 60000]), g.getrandbits(32), g.choice([0, 1]))
            + g.randbytes(g.randrange(3, 8))
            for _ in range(40)
        ),
        keep=8,
    )


def cut(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    writes: list[Write] = [("replicate", [1, [[4, 1], [5, 2]]]), ("clone", [1, [[6, 0]]])]
    return writes, on_port(
        (
            packed("BB", what, size) + b"0123456789abcdef"
            for what in range(8)
            for size in (0, 1, 2, 10, 18, 200)
        ),
        keep=2,
    )


def pieces(g: random.Random) -> tuple[list[Write], Iterable[Packet]]:
    writes: list[Write] = [("replicate", [1, [[4, 1], [510, 2], [5, 3]]])]
    out = [
        (510, fields((9, port), (7, 0)) + packed("BB", g.randrange(4), 9) + b"payload")
        for port in (1, 7, 300, 511)
    ]
    frames = (packed("BB", what, g.choice([3, 255])) + g.randbytes(4) for what in range(4) for _ in range(4))
    return writes, [*out, *on_port(frames, 1, 300, keep=2)]


INPUTS: dict[str, Callable[[random.Random], tuple[list[Write], Iterable[Packet]]]] = {
    function.__name__: function
    for function in (
        again, ahead, cells, cut, fixed, intrinsic, keys, l2, learn, leveller, mirror, order, pieces,
        spread, stacks, sums, tlv, tunnel, types, unions, ways, wide, words,
    )
}  # fmt: skip


def inputs(name: str) -> tuple[list[Write], list[Packet]]:
    """What program ``name`` is tried with, the same every time."""
    writes, packets = INPUTS[name](numbered(sum(name.encode())))
    return writes, list(packets)
