"""P4Info by id, what of it this switch refuses, and whether it describes the program it came with."""

import pytest
from finsy.proto import p4i

from softswitch.p4runtime.info import Field, Info, Param, check, find
from tests.softswitch.p4runtime.helpers import load, refusal

APART = "P4Info and program do not belong together: "


@pytest.fixture
def message():
    """features.p4's P4Info, to be changed."""
    return load("features").p4info


def named(objects, alias):
    return next(item for item in objects if item.preamble.alias == alias)


def test_a_tables_key_and_actions(program, names):
    table = program.info.table(names.id["acl"])
    assert table.name == "ingress.acl"
    assert table.fields == (
        Field(1, "hdr.ipv4.src", "ternary", 32),
        Field(2, "hdr.ipv4.protocol", "optional", 8),
        Field(3, "hdr.ipv4.ttl", "range", 8),
        Field(4, "std.ingress_port", "exact", 9),
    )
    assert table.positions == {1: 0, 2: 1, 3: 2, 4: 3}
    assert table.scopes == {
        names.id["drop"]: p4i.ActionRef.TABLE_AND_DEFAULT,
        names.id["mirror"]: p4i.ActionRef.TABLE_AND_DEFAULT,
        names.id["forward"]: p4i.ActionRef.TABLE_ONLY,
        names.id["limit"]: p4i.ActionRef.TABLE_AND_DEFAULT,
        names.id["NoAction"]: p4i.ActionRef.TABLE_AND_DEFAULT,
    }


def test_what_else_a_table_has(program, names):
    mac, acl, fixed, spread = (
        program.info.table(names.id[name]) for name in ("mac", "acl", "fixed", "spread")
    )
    assert [table.idle_timeout for table in (mac, acl)] == [True, False]
    assert [table.counter_id for table in (mac, acl)] == [319926235, 0]
    assert mac.meter is None
    assert acl.meter is not None
    assert acl.meter.unit == p4i.MeterSpec.PACKETS
    assert [table.is_const for table in (mac, fixed)] == [False, True]
    assert [table.profile_id for table in (mac, spread)] == [0, names.id["spreader"]]


def test_actions_and_names(program, names):
    info = program.info
    action = info.action(names.id["prioritise"])
    assert (action.name, action.params) == ("ingress.prioritise", (Param(1, "port", 9), Param(2, "queue", 3)))
    assert info.action_ids["ingress.prioritise"] == names.id["prioritise"]
    assert info.table_ids["ingress.mac"] == names.id["mac"]
    assert info.digest_ids == {"learn_t": names.id["learn_t"]}
    assert sorted(info.headers) == ["packet_in", "packet_out"]


def test_unknown_ids_are_named(program):
    info = program.info
    assert refusal(info.table, 0xABC) == ("INVALID_ARGUMENT", "P4Info has no table with id 0xabc")
    assert refusal(info.action, 0xABC) == ("INVALID_ARGUMENT", "P4Info has no action with id 0xabc")
    assert refusal(find, info.counters, 0xABC, "counter") == (
        "INVALID_ARGUMENT",
        "P4Info has no counter with id 0xabc",
    )


def test_find_returns_what_has_the_id(program, names):
    assert find(program.info.counters, names.id["port_counter"], "counter").size == 16


def test_translation_to_strings_is_refused(message):
    named(message.tables, "mac").match_fields[0].bitwidth = 0
    assert refusal(Info, message) == (
        "INVALID_ARGUMENT",
        "field hdr.ethernet.dst of table ingress.mac: p4runtime_translation to strings is not supported",
    )
    message = load("features").p4info
    named(message.actions, "forward").params[0].bitwidth = 0
    assert refusal(Info, message) == (
        "INVALID_ARGUMENT",
        "parameter port of action ingress.forward: p4runtime_translation to strings is not supported",
    )


def test_other_match_kinds_are_refused(message):
    named(message.tables, "mac").match_fields[0].other_match_type = "regex"
    assert refusal(Info, message) == (
        "INVALID_ARGUMENT",
        "field hdr.ethernet.dst of table ingress.mac: match kind regex is not supported",
    )


def test_the_p4info_of_the_program_fits_it(program, message):
    check(Info(message), program.pipeline)


@pytest.mark.parametrize(
    ("kind", "alias", "described"),
    [
        ("tables", "mac", "table"),
        ("counters", "port_counter", "counter"),
        ("meters", "port_meter", "meter"),
        ("registers", "port_register", "register"),
        ("digests", "learn_t", "digest"),
        ("value_sets", "extra_types", "value set"),
        ("action_profiles", "nexts", "action profile"),
    ],
)
def test_an_object_the_program_lacks_is_named(program, message, kind, alias, described):
    named(getattr(message, kind), alias).preamble.name = "other"
    assert refusal(check, Info(message), program.pipeline) == (
        "INVALID_ARGUMENT",
        f"{APART}{described} other is not in the program as described",
    )


@pytest.mark.parametrize("change", ["width", "kind"])
def test_a_key_that_differs_is_shown_both_ways(program, message, change):
    key = named(message.tables, "route").match_fields[0]
    if change == "width":
        key.bitwidth = 31
    else:
        key.match_type = p4i.MatchField.TERNARY
    seen = [(("lpm", 31) if change == "width" else ("ternary", 32))]
    assert refusal(check, Info(message), program.pipeline) == (
        "INVALID_ARGUMENT",
        f"{APART}the key of table ingress.route is {seen} in P4Info and {[('lpm', 32)]} in the program",
    )


def test_an_actions_parameters_must_have_the_programs_widths(program, message):
    named(message.actions, "punt").params[0].bitwidth = 4
    assert refusal(check, Info(message), program.pipeline) == (
        "INVALID_ARGUMENT",
        f"{APART}table ingress.mac, action ingress.punt is not in the program as described",
    )


def test_an_action_of_another_table_does_not_fit(program, message, names):
    named(message.tables, "mac").action_refs.add(id=names.id["learn"])
    assert refusal(check, Info(message), program.pipeline)[1] == (
        f"{APART}table ingress.mac, action ingress.learn is not in the program as described"
    )
