"""Entries and default entries, their matches, actions, metadata and direct resources."""

import time

import pytest
from finsy.proto import p4r
from grpc import StatusCode

from tests.softswitch.p4runtime.helpers import RpcFailedError, delete, insert, modify

INVALID, DENIED = StatusCode.INVALID_ARGUMENT.value[0], StatusCode.PERMISSION_DENIED.value[0]
NOT_FOUND, EXISTS, FULL = 5, 6, 8


def refused(client, update):
    """Write one update that must fail; return its error."""
    with pytest.raises(RpcFailedError) as caught:
        client.write(update)
    return caught.value.errors[0]


def entries(client, names, table, **fields):
    return client.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=names.id[table], **fields)))


def test_what_is_read_is_what_was_written(client, names):
    entry = names.entry(
        "mac",
        "prioritise",
        args={"port": 257, "queue": 7},
        match={"dst": 0x0200},
        metadata=b"cookie",
        controller_metadata=5,
        idle_timeout_ns=10**12,
    )
    client.write(insert(table_entry=entry))
    assert entries(client, names, "mac") == [entry]


def test_long_byte_strings_are_read_back_in_canonical_form(client, names):
    long = names.entry("mac", "forward", args={"port": b"\0\0\x01"}, match={"dst": b"\0" * 9})
    client.write(insert(table_entry=long))
    short = names.entry("mac", "forward", args={"port": 1}, match={"dst": 0})
    assert entries(client, names, "mac") == [short]
    client.write(delete(table_entry=names.entry("mac", match={"dst": b"\0\0"})))
    assert entries(client, names, "mac") == []


def test_insert_modify_delete_and_their_errors(client, names):
    entry = names.entry("mac", "forward", args={"port": 1}, match={"dst": 1})
    other = names.entry("mac", "flood", args={"group": 9}, match={"dst": 1}, metadata=b"new")
    assert refused(client, modify(table_entry=entry)).canonical_code == NOT_FOUND
    assert refused(client, delete(table_entry=entry)).canonical_code == NOT_FOUND
    client.write(insert(table_entry=entry))
    assert refused(client, insert(table_entry=other)).canonical_code == EXISTS
    assert entries(client, names, "mac") == [entry]
    client.write(modify(table_entry=other))
    assert entries(client, names, "mac") == [other]
    nonsense = names.entry("mac", match={"dst": 1})
    nonsense.action.action.action_id = 12345  # a DELETE reads the key alone
    client.write(delete(table_entry=nonsense))
    assert entries(client, names, "mac") == []


def test_a_modify_without_action_keeps_the_action(client, names):
    client.write(insert(table_entry=names.entry("mac", "forward", args={"port": 3}, match={"dst": 1})))
    client.write(modify(table_entry=names.entry("mac", match={"dst": 1}, metadata=b"m")))
    expected = names.entry("mac", "forward", args={"port": 3}, match={"dst": 1}, metadata=b"m")
    assert entries(client, names, "mac") == [expected]


def test_a_full_table(client, names):
    def acl(number):
        return names.entry("acl", "drop", match={"ingress_port": number}, priority=1)

    client.write(*[insert(table_entry=acl(number)) for number in range(4)])
    error = refused(client, insert(table_entry=acl(4)))
    assert error.canonical_code == FULL
    assert "ingress.acl" in error.message


@pytest.mark.parametrize(
    ("match", "error"),
    [
        ({}, "dst is missing"),
        ({"dst": b""}, "empty"),
        ({"dst": 1 << 48}, "48 bits"),
        ({"dst": ("ternary", {"value": 1, "mask": 1})}, "matched exact"),
    ],
)
def test_exact_keys_are_checked(client, names, match, error):
    refusal = refused(
        client, insert(table_entry=names.entry("mac", "forward", args={"port": 1}, match=match))
    )
    assert refusal.canonical_code == INVALID
    assert "ingress.mac" in refusal.message
    assert error in refusal.message


def test_a_field_twice_and_a_field_that_is_not_there(client, names):
    entry = names.entry("mac", "forward", args={"port": 1}, match={"dst": 1})
    twice = p4r.TableEntry.FromString(entry.SerializeToString())
    twice.match.append(entry.match[0])
    assert "twice" in refused(client, insert(table_entry=twice)).message
    entry.match[0].field_id = 77
    assert "id 77" in refused(client, insert(table_entry=entry)).message


@pytest.mark.parametrize(
    ("lpm", "error"),
    [
        ({"value": 0x0A000000, "prefix_len": 0}, "leaving the field out"),
        ({"value": 0x0A000000, "prefix_len": 33}, "33"),
        ({"value": 0x0A000001, "prefix_len": 24}, "after the first 24"),
    ],
)
def test_prefixes_are_checked(client, names, lpm, error):
    entry = names.entry("route", "drop", match={"dst": ("lpm", lpm)})
    assert error in refused(client, insert(table_entry=entry)).message


def test_prefixes_and_the_default_route(client, names):
    one = names.entry(
        "route", "forward", args={"port": 1}, match={"dst": ("lpm", {"value": 0x0A000000, "prefix_len": 8})}
    )
    everything = names.entry("route", "forward", args={"port": 2})
    client.write(insert(table_entry=one), insert(table_entry=everything))
    assert entries(client, names, "route") == [one, everything]
    assert client.read(p4r.Entity(table_entry=one)) == [one]
    client.write(delete(table_entry=everything))
    assert entries(client, names, "route") == [one]


@pytest.mark.parametrize(
    ("match", "error"),
    [
        ({"src": ("ternary", {"value": 1, "mask": 0})}, "leaving the field out"),
        ({"src": ("ternary", {"value": 3, "mask": 1})}, "outside the mask"),
        ({"ttl": ("range", {"low": 5, "high": 4})}, "empty"),
        ({"ttl": ("range", {"low": 0, "high": 255})}, "leaving the field out"),
        ({"protocol": ("optional", {"value": 256})}, "8 bits"),
    ],
)
def test_ternary_range_and_optional_keys_are_checked(client, names, match, error):
    entry = names.entry("acl", "drop", match={"ingress_port": 1, **match}, priority=1)
    refusal = refused(client, insert(table_entry=entry))
    assert (refusal.canonical_code, error in refusal.message) == (INVALID, True)


def test_priorities(client, names):
    def acl(priority, **match):
        return names.entry("acl", "drop", match={**match, "ingress_port": 1}, priority=priority)

    assert refused(client, insert(table_entry=acl(0))).canonical_code == INVALID
    assert refused(client, insert(table_entry=acl(-1))).canonical_code == INVALID
    mac = names.entry("mac", "forward", args={"port": 1}, match={"dst": 1}, priority=1)
    assert refused(client, insert(table_entry=mac)).canonical_code == INVALID
    masked = acl(
        10,
        src=("ternary", {"value": 0x0A000000, "mask": 0xFF000000}),
        protocol=("optional", {"value": 6}),
        ttl=("range", {"low": 1, "high": 9}),
    )
    client.write(insert(table_entry=acl(10)), insert(table_entry=acl(20)), insert(table_entry=masked))
    assert entries(client, names, "acl") == [acl(10), acl(20), masked]
    assert entries(client, names, "acl", priority=10) == [acl(10), masked]
    assert client.read(p4r.Entity(table_entry=masked)) == [masked]
    assert client.read(p4r.Entity(table_entry=acl(0))) == [acl(10), acl(20)]


def test_actions_are_checked(client, names):
    entry = names.entry("mac", "learn", match={"dst": 1})
    assert "ingress.mac has no action ingress.learn" in refused(client, insert(table_entry=entry)).message
    missing = names.entry("mac", "forward", match={"dst": 1})
    assert "port of action ingress.forward is missing" in refused(client, insert(table_entry=missing)).message
    wide = names.entry("mac", "forward", args={"port": 512}, match={"dst": 1})
    assert "9 bits" in refused(client, insert(table_entry=wide)).message
    extra = names.entry("mac", "forward", args={"port": 1}, match={"dst": 1})
    extra.action.action.params.add(param_id=9, value=b"\1")
    assert "id 9" in refused(client, insert(table_entry=extra)).message
    assert refused(client, insert(table_entry=names.entry("mac", match={"dst": 1}))).canonical_code == INVALID
    member = names.entry("mac", match={"dst": 1})
    member.action.action_profile_member_id = 1
    assert "must be an action" in refused(client, insert(table_entry=member)).message


def test_action_scopes(client, names):
    assert (
        refused(client, insert(table_entry=names.entry("mac", "drop", match={"dst": 1}))).canonical_code
        == DENIED
    )
    default = names.entry("acl", "forward", args={"port": 1}, is_default_action=True)
    assert refused(client, modify(table_entry=default)).canonical_code == DENIED


def test_the_default_entry(client, names):
    initial = names.entry("mac", "drop", is_default_action=True)
    assert entries(client, names, "mac", is_default_action=True) == [initial]
    changed = names.entry("mac", "forward", args={"port": 4}, is_default_action=True, metadata=b"d")
    client.write(modify(table_entry=changed))
    assert entries(client, names, "mac", is_default_action=True) == [changed]
    assert entries(client, names, "mac") == []
    client.write(modify(table_entry=names.entry("mac", is_default_action=True)))
    assert entries(client, names, "mac", is_default_action=True) == [initial]
    for update in (insert(table_entry=changed), delete(table_entry=changed)):
        assert refused(client, update).canonical_code == INVALID
    with_match = names.entry("mac", "forward", args={"port": 1}, match={"dst": 1}, is_default_action=True)
    assert refused(client, modify(table_entry=with_match)).canonical_code == INVALID


def test_constant_defaults_and_entries(client, names):
    default = names.entry("route", "drop", is_default_action=True)
    assert refused(client, modify(table_entry=default)).canonical_code == DENIED
    assert [entry.is_const for entry in entries(client, names, "route", is_default_action=True)] == [True]
    fixed = entries(client, names, "fixed")
    assert [entry.is_const for entry in fixed] == [True, True]
    for entry in fixed:
        entry.is_const = False
    assert fixed[0] == names.entry("fixed", "drop", match={"type": 0x88CC})
    assert refused(client, modify(table_entry=fixed[0])).canonical_code == DENIED
    assert refused(client, delete(table_entry=fixed[0])).canonical_code == DENIED
    new = names.entry("fixed", "drop", match={"type": 1})
    assert refused(client, insert(table_entry=new)).canonical_code == DENIED
    new.is_const = True
    assert refused(client, insert(table_entry=new)).canonical_code == INVALID


def test_wildcard_reads_and_filters(client, names):
    first = names.entry("mac", "forward", args={"port": 1}, match={"dst": 1}, metadata=b"a")
    second = names.entry("mac", "flood", args={"group": 1}, match={"dst": 2}, controller_metadata=7)
    route = names.entry("route", "drop")
    client.write(*[insert(table_entry=entry) for entry in (first, second, route)])
    every = client.read(p4r.Entity(table_entry=p4r.TableEntry()))
    assert [entry for entry in every if not entry.is_const] == [first, second, route]
    assert entries(client, names, "mac", metadata=b"a") == [first]
    assert entries(client, names, "mac", controller_metadata=7) == [second]
    flood = p4r.TableAction(action=p4r.Action(action_id=names.id["flood"]))
    assert entries(client, names, "mac", action=flood) == [second]
    assert client.read(p4r.Entity(table_entry=names.entry("mac", match={"dst": 3}))) == []


def test_idle_timeouts_only_where_the_table_has_them(client, names, service):
    source = names.entry("source", "learn", match={"src": 1}, idle_timeout_ns=1)
    assert refused(client, insert(table_entry=source)).canonical_code == INVALID
    mac = names.entry("mac", "forward", args={"port": 1}, match={"dst": 1}, idle_timeout_ns=-1)
    assert refused(client, insert(table_entry=mac)).canonical_code == INVALID
    mac.idle_timeout_ns = 10**15
    client.write(insert(table_entry=mac))
    wanted = p4r.TableEntry.IdleTimeout()
    before = entries(client, names, "mac", time_since_last_hit=wanted)[0].time_since_last_hit.elapsed_ns
    time.sleep(1)
    after = entries(client, names, "mac", time_since_last_hit=wanted)[0].time_since_last_hit.elapsed_ns
    assert 0 <= before < after < 10**10
    service[1]._process([bytes(5) + b"\1" + bytes(20)], 1)
    hit = entries(client, names, "mac", time_since_last_hit=wanted)[0].time_since_last_hit.elapsed_ns
    assert hit < after
