import random
import struct

import pytest

FIELDS = struct.Struct("!HBIHHBBQ")


def key(exact1=0, exact2=0, lpm=0, ternary=0, between=0, optional=0, flags=0):
    return FIELDS.pack(exact1, exact2, lpm, ternary, between, optional, flags, 0)


def path(switch, packet):
    """The letters of the actions that ran, in order."""
    ((port, data),) = switch.ports(packet)
    assert port == 1
    return data[13:21].lstrip(b"\0").decode()


@pytest.fixture
def switch(ours):
    return filled(ours("match"))


def filled(switch):
    switch.insert("exact_pair", [1, 2], "mark", ord("E"))
    switch.insert("exact_pair", [1, 3], "leave", ord("X"))
    switch.insert("longest", [(0x0A000000, 8)], "mark", ord("8"))
    switch.insert("longest", [(0x0A010000, 16)], "choose", ord("6"))
    switch.insert("longest", [(0x0A010200, 24)], "choose", ord("X"))
    switch.insert("masked", [(0x1200, 0xFF00), 0], "mark", ord("A"), priority=5)
    switch.insert("masked", [(0x0034, 0x00FF), 0], "mark", ord("B"), priority=7)
    switch.insert("masked", [(0, 0), 9], "mark", ord("C"), priority=1)
    switch.insert("between", [(100, 200)], "mark", ord("R"), priority=1)
    switch.insert("between", [(150, 160)], "mark", ord("S"), priority=2)
    switch.insert("maybe", [7], "mark", ord("O"), priority=2)
    switch.insert("maybe", [None], "mark", ord("o"), priority=1)
    return switch


def test_defaults_run_where_nothing_matches(ours):
    assert path(ours("match"), key()) == "m-a---i"


def test_exact_hit_and_miss_fork_the_control_flow(switch):
    assert path(switch, key(exact1=1, exact2=2)).startswith("Eh")
    assert path(switch, key(exact1=2, exact2=1)).startswith("m")


def test_exit_ends_the_pipeline(switch):
    assert path(switch, key(exact1=1, exact2=3)) == "X"


def test_the_longest_prefix_wins_and_the_action_decides_what_follows(switch):
    assert path(switch, key(lpm=0x0AFFFFFF)).startswith("m8a")
    assert path(switch, key(lpm=0x0A01FF00)).startswith("m6b")
    assert path(switch, key(lpm=0x0B000000)).startswith("m-a")


def test_return_inside_an_action_and_inside_the_control(switch):
    assert path(switch, key(lpm=0x0A010203)).startswith("b-")  # the action cleared the path and returned
    assert path(switch, key(lpm=0x0A01FF00, flags=0x40)) == "m6"


def test_ternary_takes_the_highest_priority(switch):
    assert path(switch, key(ternary=0x1299))[3] == "A"
    assert path(switch, key(ternary=0x1234))[3] == "B"
    assert path(switch, key(ternary=0x9999, exact2=9))[3] == "C"
    assert path(switch, key(ternary=0x9999))[3] == "-"


@pytest.mark.parametrize(
    ("value", "letter"), [(99, "-"), (100, "R"), (149, "R"), (150, "S"), (160, "S"), (200, "R"), (201, "-")]
)
def test_ranges_include_both_ends(switch, value, letter):
    assert path(switch, key(between=value))[4] == letter


def test_optional_matches_one_value_or_any(switch):
    assert path(switch, key(optional=7))[5] == "O"
    assert path(switch, key(optional=8))[5] == "o"


def test_const_entries_validity_keys_and_invalid_headers_reading_as_zero(switch):
    assert path(switch, key())[6] == "i"
    assert path(switch, key(flags=0x80) + b"\x15")[6] == "V"
    assert path(switch, key(flags=0x80) + b"\x25")[6] == "v"


def test_a_slice_is_matched_alone(switch):
    assert path(switch, key(flags=0x11))[7:] == "1"
    assert path(switch, key(flags=0x02))[7:] == "2"
    assert path(switch, key(flags=0x03))[7:] == ""


def test_mark_to_drop_in_egress_drops(switch):
    assert switch.ports(key(flags=0x20)) == []


def test_a_change_of_the_default_action_and_of_entries_is_seen_at_once(switch):
    packet = key(lpm=0x0B000000)
    assert path(switch, packet)[1] == "-"
    table = switch.table("longest")
    table.set_default(switch.action("longest", "mark", ord("+")))
    assert path(switch, packet)[1] == "+"
    switch.insert("longest", [(0x0B000000, 8)], "mark", ord("n"))
    assert path(switch, packet)[1] == "n"
    table.modify([(0x0B000000, 8)], switch.action("longest", "mark", ord("N")))
    assert path(switch, packet)[1] == "N"
    table.delete([(0x0B000000, 8)])
    table.reset_default()
    assert path(switch, packet)[1] == "-"


def test_random_keys_take_the_path_they_take_in_bmv2(both):
    switch, bmv2 = both("match")
    filled(switch)
    filled(bmv2)
    generator = random.Random(3)
    for _ in range(60):
        packet = key(
            exact1=generator.randrange(3),
            exact2=generator.choice([0, 1, 2, 3, 9]),
            lpm=generator.choice([0x0A000001, 0x0A010001, 0x0A010201, 0x0B000000]),
            ternary=generator.choice([0x1234, 0x1200, 0x0034, 5]),
            between=generator.choice([99, 100, 150, 160, 161, 201]),
            optional=generator.choice([6, 7]),
            flags=generator.randrange(256),
        ) + generator.randbytes(2)
        expected = switch.ports(packet)
        assert bmv2.ports(packet, 1, len(expected)) == expected, packet.hex()
