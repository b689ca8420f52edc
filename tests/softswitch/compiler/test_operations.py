import random
import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from softswitch.compiler import operations
from softswitch.compiler.values import Val, bits, const, truncated

BYTE = st.integers(0, 255)
SIGNED = st.integers(-128, 127)


def values(a, b, s, t, w, n):
    return struct.pack("!BBbbIB", a, b, s, t, w, n)


def run(switch, a=0, b=0, s=0, t=0, w=0, n=0):
    ((port, data),) = switch.ports(values(a, b, s, t, w, n))
    assert port == 2
    names = (
        "add sub mul sat_add sat_sub ssat_add ssat_sub sadd neg inv shl shr sshr slice concat narrow widen"
    )
    fields = dict(zip([*names.split(), "mux"], struct.unpack("!BBBBBbbbBBIIbBHBhB", data[:26]), strict=True))
    last = int.from_bytes(data[26:28], "big")
    fields |= {"lt": last >> 15, "slt": last >> 14 & 1, "eq": last >> 13 & 1, "same": last >> 12 & 1}
    fields |= {"nibble": last >> 8 & 15, "xor": last & 255}
    return fields, data[28:]


def clamp(x, low, high):
    return max(low, min(high, x))


def signed(x, width):
    x &= (1 << width) - 1
    return x - (1 << width) if x >> width - 1 else x


def check_operators(switch, a, b, s, t, w, n):
    result, copy = run(switch, a, b, s, t, w, n)
    assert result == {
        "add": (a + b) % 256,
        "sub": (a - b) % 256,
        "mul": a * b % 256,
        "sat_add": min(a + b, 255),
        "sat_sub": max(a - b, 0),
        "ssat_add": clamp(s + t, -128, 127),
        "ssat_sub": clamp(s - t, -128, 127),
        "sadd": signed(s + t, 8),
        "neg": -a % 256,
        "inv": 255 - a,
        "shl": (w << n) % 2**32,
        "shr": w >> n,
        "sshr": s >> 2,
        "slice": w >> 12 & 255,
        "concat": a << 8 | b,
        "narrow": w & 255,
        "widen": s,
        "mux": min(a, b),
        "lt": int(a < b),
        "slt": int(s < t),
        "eq": int(a == b),
        "same": int(n != 7),
        "nibble": b & 9 | (a >> 6) << 1,
        "xor": a ^ b | a & 15,
    }
    assert copy == values((a + 1) % 256 if n == 7 else a, b, s, t, w, n)


def test_every_operator_computes_as_p4_says(ours):
    switch = ours("arith")

    @settings(max_examples=150, deadline=None)
    @given(BYTE, BYTE, SIGNED, SIGNED, st.integers(0, 2**32 - 1), BYTE)
    def check(a, b, s, t, w, n):
        check_operators(switch, a, b, s, t, w, n)

    check()


def test_results_are_those_of_bmv2(both):
    switch, bmv2 = both("arith")
    generator = random.Random(1)
    for _ in range(25):
        packet = generator.randbytes(9) + bytes([generator.choice([0, 1, 7, 8, 31, 32, 255])]) + b"rest"
        expected = switch.ports(packet)
        assert bmv2.ports(packet, 1, len(expected)) == expected


def test_masks_are_left_out_where_nothing_can_exceed_them():
    x = bits("x", 8)
    assert operations.binary("&", x, const(255)) == x
    assert operations.binary("&", x, const(15)).code == "(x & 15)"
    assert truncated(operations.binary("+", x, const(1)), 8) == "(x + 1) & 255"
    assert truncated(operations.binary("+", x, const(1)), 9) == "(x + 1)"


def test_a_huge_shift_builds_no_huge_number():
    code = operations.binary("<<", bits("x", 32), bits("y", 32)).code
    assert eval(code, {"x": 1, "y": 2**31}) == 0


def test_an_unknown_operator_has_no_code():
    assert operations.binary("<=>", const(1), const(2)) is None
    assert operations.unary("sqrt", const(4)) is None


def test_division_by_zero_is_no_crash():
    code = operations.binary("/", bits("x", 8), bits("y", 8)).code
    assert eval(code, {"x": 7, "y": 0}) == 0
    assert eval(code, {"x": 7, "y": 2}) == 3


def test_a_condition_stored_as_a_number_is_one():
    assert truncated(Val("(a < b)", 0, 1, truth=True), 1) == "(1 if (a < b) else 0)"
