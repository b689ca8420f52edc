"""Which entries a read selects: one, by filters, of every table; and the keys they are told by."""

import pytest
from finsy.proto import p4r
from grpc import StatusCode

from softswitch.errors import Code, TableError
from softswitch.p4runtime import selection, table_entries
from tests.softswitch.p4runtime.helpers import refusal

LOW = {"ingress_port": 1, "src": ("ternary", {"value": 1, "mask": 1})}


@pytest.fixture
def filled(program, names):
    """features.p4 with entries in mac and acl."""
    for entry in (
        names.entry(
            "mac", "forward", args={"port": 1}, match={"dst": 1}, metadata=b"a", controller_metadata=7
        ),
        names.entry("mac", "flood", args={"group": 1}, match={"dst": 2}, metadata=b"b"),
        names.entry("mac", "forward", args={"port": 2}, match={"dst": 3}),
        names.entry("acl", "drop", match=LOW, priority=1),
        names.entry("acl", "drop", match=LOW, priority=2),
        names.entry("acl", "NoAction", match={"ingress_port": 2}, priority=2),
    ):
        table_entries.write(program, p4r.Update.INSERT, entry, 0)
    return program


@pytest.fixture
def select(filled):
    """Return a function that selects, and tells (table's name, match, priority) of what it found."""

    def run(request=None, wanted=lambda _: True):
        found = selection.select(filled, request or p4r.TableEntry(), wanted)
        return [(item.table.name, item.entry.match, item.entry.priority) for item in found]

    return run


def mac(*addresses):
    return [("ingress.mac", (address,), 0) for address in addresses]


def acl(priority, *match):
    return ("ingress.acl", match or ((1, 1), None, (0, 255), 1), priority)


def test_all_entries_of_a_table_in_order(select, names):
    assert select(names.entry("mac")) == mac(1, 2, 3)


def test_all_tables_in_order_of_p4info(select):
    fixed = [("ingress.fixed", (0x88CC,), 0), ("ingress.fixed", (0x88CD,), 0)]
    rest = [acl(1), acl(2), acl(2, (0, 0), None, (0, 255), 2)]
    assert select() == [*mac(1, 2, 3), *rest, *fixed]


def test_only_tables_that_are_wanted(select):
    assert select(wanted=lambda table: table.idle_timeout) == mac(1, 2, 3)


def test_over_all_tables_other_filters_do_not_count(select):
    assert select(p4r.TableEntry(priority=2, metadata=b"a"), lambda table: table.idle_timeout) == mac(1, 2, 3)


@pytest.mark.parametrize(
    ("fields", "addresses"),
    [
        ({"metadata": b"a"}, (1,)),
        ({"controller_metadata": 7}, (1,)),
        ({"controller_metadata": 8}, ()),
        ({"match": {"dst": 2}}, (2,)),
        ({"match": {"dst": 2}, "metadata": b"a"}, ()),
        ({"match": {"dst": 9}}, ()),
    ],
)
def test_filters(select, names, fields, addresses):
    assert select(names.entry("mac", **fields)) == mac(*addresses)


def test_the_filter_on_actions_is_their_id(select, names):
    request = names.entry("mac")
    request.action.action.action_id = names.id["forward"]
    assert select(request) == mac(1, 3)


def test_a_match_without_priority_means_every_priority(select, names):
    assert select(names.entry("acl", match=LOW)) == [acl(1), acl(2)]
    assert select(names.entry("acl", match=LOW, priority=2)) == [acl(2)]
    assert select(names.entry("acl", match=LOW, priority=3)) == []
    assert select(names.entry("acl", priority=2)) == [acl(2), acl(2, (0, 0), None, (0, 255), 2)]


def test_default_entries(filled, names):
    found = list(selection.select(filled, names.entry("mac", is_default_action=True), lambda _: True))
    assert [(item.is_default, item.is_const, item.entry.action.name) for item in found] == [
        (True, False, "ingress.drop")
    ]
    everywhere = selection.select(filled, p4r.TableEntry(is_default_action=True), lambda _: True)
    constant = {item.table.name for item in everywhere if item.is_const}
    assert constant == {"ingress.route"}


@pytest.mark.parametrize("fields", [{"match": {"dst": 1}}, {"priority": 1}])
def test_a_default_entry_has_no_key(filled, names, fields):
    request = names.entry("mac", is_default_action=True, **fields)
    error = ("INVALID_ARGUMENT", "table ingress.mac: the default entry has neither match nor priority")
    assert refusal(lambda: list(selection.select(filled, request, lambda _: True))) == error
    assert refusal(selection.one, filled, request) == error


def test_one_entry_by_its_key(filled, names):
    found = selection.one(filled, names.entry("acl", match=LOW, priority=2))
    assert (found.entry.priority, found.is_default, found.is_const) == (2, False, False)
    assert selection.one(filled, names.entry("fixed", match={"type": 0x88CC})).is_const
    with pytest.raises(TableError) as caught:
        selection.one(filled, names.entry("acl", match=LOW))
    assert caught.value.code == Code.NOT_FOUND


def test_unknown_tables_are_named(filled):
    error = ("INVALID_ARGUMENT", "P4Info has no table with id 0x5")
    assert refusal(selection.one, filled, p4r.TableEntry(table_id=5)) == error
    assert (
        refusal(lambda: list(selection.select(filled, p4r.TableEntry(table_id=5), lambda _: True))) == error
    )


def test_keys_identify_entries(filled, names):
    wanted = names.entry("acl", match={"ingress_port": 2}, priority=2)
    assert selection.key(selection.one(filled, wanted)) == wanted
    default = names.entry("acl", is_default_action=True)
    assert selection.key(selection.one(filled, default)) == default


def test_what_is_always_there_can_only_be_modified():
    selection.require_modify(p4r.Update.MODIFY, "meter")
    for kind in (p4r.Update.INSERT, p4r.Update.DELETE):
        assert refusal(selection.require_modify, kind, "meter") == (
            "INVALID_ARGUMENT",
            "a meter can only be modified",
        )


def test_per_colour_counters_are_not_implemented():
    selection.refuse_meter_counters(given=False)
    code, _ = refusal(selection.refuse_meter_counters, given=True)
    assert code == StatusCode.UNIMPLEMENTED.name
