"""FieldMatch, one kind at a time: what is read, what is written back, and what the Match Format forbids."""

import pytest
from finsy.proto import p4r

from softswitch.p4runtime.matches import decode_match, encode_match
from tests.softswitch.p4runtime.helpers import refusal

PORT = {"ingress_port": 1}
EMPTY = "the value is empty; zero is one zero byte"
LEFT_OUT = '"don\'t care" is said by leaving the field out'


@pytest.fixture
def table(program, names):
    return lambda name: program.info.tables[names.id[name]]


@pytest.fixture
def fields(names):
    """Return a function that makes the FieldMatches of a table."""
    return lambda name, match: list(names.entry(name, match=match).match)


@pytest.mark.parametrize(
    ("name", "match", "values"),
    [
        ("mac", {"dst": 0x0200_0000_0001}, (0x0200_0000_0001,)),
        ("mac", {"dst": 0}, (0,)),
        ("route", {"dst": ("lpm", {"value": 0x0A010000, "prefix_len": 16})}, ((0x0A010000, 16),)),
        ("route", {"dst": ("lpm", {"value": 0x0A010203, "prefix_len": 32})}, ((0x0A010203, 32),)),
        ("route", {"dst": ("lpm", {"value": 0, "prefix_len": 1})}, ((0, 1),)),
        ("acl", {**PORT, "src": ("ternary", {"value": 0, "mask": 1})}, ((0, 1), None, (0, 255), 1)),
        ("acl", {**PORT, "protocol": ("optional", {"value": 0})}, ((0, 0), 0, (0, 255), 1)),
        ("acl", {**PORT, "ttl": ("range", {"low": 1, "high": 255})}, ((0, 0), None, (1, 255), 1)),
        ("acl", {**PORT, "ttl": ("range", {"low": 7, "high": 7})}, ((0, 0), None, (7, 7), 1)),
    ],
)
def test_every_kind_is_read_and_written_back(table, fields, name, match, values):
    given = fields(name, match)
    assert decode_match(table(name), given) == values
    assert sorted(encode_match(table(name), values), key=lambda item: item.field_id) == sorted(
        given, key=lambda item: item.field_id
    )


def test_fields_left_out_do_not_matter_and_are_not_written(table, fields):
    assert decode_match(table("route"), []) == ((0, 0),)
    assert encode_match(table("route"), ((0, 0),)) == []
    assert decode_match(table("acl"), fields("acl", PORT)) == ((0, 0), None, (0, 255), 1)
    assert encode_match(table("acl"), ((0, 0), None, (0, 255), 1)) == fields("acl", PORT)


def test_an_exact_zero_is_written(table):
    assert encode_match(table("mac"), (0,))[0].exact.value == b"\0"


def test_the_order_of_fields_does_not_matter(table, fields):
    given = fields(
        "acl", {**PORT, "ttl": ("range", {"low": 2, "high": 3}), "protocol": ("optional", {"value": 6})}
    )
    assert decode_match(table("acl"), given) == decode_match(table("acl"), given[::-1])
    assert [item.field_id for item in encode_match(table("acl"), ((0, 0), 6, (2, 3), 1))] == [2, 3, 4]


def test_long_strings_are_read_by_value_and_written_shortest(table, fields):
    given = fields(
        "acl",
        {
            "ingress_port": b"\0\0\x01\xff",
            "src": ("ternary", {"value": b"\0" * 4 + b"\x10", "mask": b"\0\xf0"}),
        },
    )
    values = decode_match(table("acl"), given)
    assert values == ((0x10, 0xF0), None, (0, 255), 511)
    source, port = encode_match(table("acl"), values)
    assert (source.ternary.value, source.ternary.mask, port.exact.value) == (b"\x10", b"\xf0", b"\x01\xff")


@pytest.mark.parametrize(
    ("name", "match", "message"),
    [
        ("mac", {"dst": b""}, f"table ingress.mac, field hdr.ethernet.dst: {EMPTY}"),
        (
            "mac",
            {"dst": 1 << 48},
            "table ingress.mac, field hdr.ethernet.dst: 0x1000000000000 does not fit into 48 bits",
        ),
        (
            "mac",
            {},
            "table ingress.mac: field hdr.ethernet.dst is missing; an exact match cannot be left out",
        ),
        (
            "mac",
            {"dst": ("ternary", {"value": 1, "mask": 1})},
            "table ingress.mac: field hdr.ethernet.dst is matched exact, not ternary",
        ),
        (
            "route",
            {"dst": ("lpm", {"value": 0, "prefix_len": 0})},
            f"table ingress.route, field hdr.ipv4.dst: {LEFT_OUT}",
        ),
        (
            "route",
            {"dst": ("lpm", {"value": 0, "prefix_len": 33})},
            "table ingress.route, field hdr.ipv4.dst: no prefix of 33 bits",
        ),
        (
            "route",
            {"dst": ("lpm", {"value": 0, "prefix_len": -1})},
            "table ingress.route, field hdr.ipv4.dst: no prefix of -1 bits",
        ),
        (
            "route",
            {"dst": ("lpm", {"value": 0x0A010001, "prefix_len": 16})},
            "table ingress.route, field hdr.ipv4.dst: 0xa010001 has bits set after the first 16",
        ),
        (
            "acl",
            {**PORT, "src": ("ternary", {"value": 0, "mask": 0})},
            f"table ingress.acl, field hdr.ipv4.src: {LEFT_OUT}",
        ),
        (
            "acl",
            {**PORT, "src": ("ternary", {"value": 0x11, "mask": 0x10})},
            "table ingress.acl, field hdr.ipv4.src: 0x11 has bits set outside the mask 0x10",
        ),
        (
            "acl",
            {**PORT, "src": ("ternary", {"value": 0, "mask": 1 << 32})},
            "table ingress.acl, field hdr.ipv4.src: 0x100000000 does not fit into 32 bits",
        ),
        (
            "acl",
            {**PORT, "protocol": ("optional", {"value": 256})},
            "table ingress.acl, field hdr.ipv4.protocol: 0x100 does not fit into 8 bits",
        ),
        (
            "acl",
            {**PORT, "ttl": ("range", {"low": 4, "high": 3})},
            "table ingress.acl, field hdr.ipv4.ttl: the range 4..3 is empty",
        ),
        (
            "acl",
            {**PORT, "ttl": ("range", {"low": 0, "high": 255})},
            f"table ingress.acl, field hdr.ipv4.ttl: {LEFT_OUT}",
        ),
        (
            "acl",
            {"ingress_port": 512},
            "table ingress.acl, field std.ingress_port: 0x200 does not fit into 9 bits",
        ),
    ],
)
def test_what_is_wrong_is_named(table, fields, name, match, message):
    assert refusal(decode_match, table(name), fields(name, match)) == ("INVALID_ARGUMENT", message)


def test_fields_unknown_twice_and_without_a_kind(table, fields):
    mac, given = table("mac"), fields("mac", {"dst": 1})
    unknown = p4r.FieldMatch(field_id=7, exact=p4r.FieldMatch.Exact(value=b"\1"))
    assert (
        refusal(decode_match, mac, [*given, unknown])[1] == "table ingress.mac has no match field with id 7"
    )
    assert (
        refusal(decode_match, mac, given * 2)[1] == "table ingress.mac: field hdr.ethernet.dst is given twice"
    )
    assert refusal(decode_match, mac, [p4r.FieldMatch(field_id=1)])[1] == (
        "table ingress.mac: field hdr.ethernet.dst is matched exact, not by nothing"
    )
