import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softswitch.entries import ActionCall, ActionSpec, KeyField, MemberRef
from softswitch.errors import Code, TableError
from softswitch.tables import Table

ACTIONS = [ActionSpec("set", 1, (8,)), ActionSpec("drop", 2, ())]
DROP = ActionCall("drop")


def table(*keys, size=100, **options):
    fields = [KeyField(f"f{i}", kind, width) for i, (kind, width) in enumerate(keys)]
    return Table("t", fields, ACTIONS, size, DROP, **options)


def code(error):
    return error.value.code


def test_exact_entries_are_found_by_value_or_tuple():
    one = table(("exact", 16))
    entry = one.insert([7], ActionCall("set", (3,)))
    assert one.exact[7] is entry
    assert one.lookup(7) is entry
    assert one.lookup(8) is one.miss
    assert entry.call == (1, (3,))
    two = table(("exact", 16), ("exact", 8))
    assert two.insert([7, 1], DROP) is two.exact[7, 1]


def test_insert_checks_match_priority_action_and_size():
    t = table(("exact", 8), ("ternary", 8), size=1)
    for match, priority, action in [
        ([1], 1, DROP),
        ([256, (0, 0)], 1, DROP),
        ([1, (3, 1)], 1, DROP),
        ([1, 5], 1, DROP),
        ([1, (1, 1)], 0, DROP),
        ([1, (1, 1)], 1, ActionCall("fly")),
        ([1, (1, 1)], 1, ActionCall("set")),
        ([1, (1, 1)], 1, ActionCall("set", (256,))),
        ([1, (1, 1)], 1, MemberRef(1)),
    ]:
        with pytest.raises(TableError) as error:
            t.insert(match, action, priority)
        assert code(error) == Code.INVALID_ARGUMENT
    assert list(t.entries()) == []
    t.insert([1, (1, 1)], DROP, 1)
    with pytest.raises(TableError) as error:
        t.insert([1, (1, 1)], DROP, 1)
    assert code(error) == Code.ALREADY_EXISTS
    with pytest.raises(TableError) as error:
        t.insert([2, (1, 1)], DROP, 1)
    assert code(error) == Code.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        ("lpm", (1, 8)),
        ("lpm", (0, 17)),
        ("lpm", 5),
        ("range", (3, 2)),
        ("range", (0, 1 << 16)),
        ("optional", 1 << 16),
        ("ternary", (1, 1 << 16)),
    ],
)
def test_matches_that_do_not_fit_their_kind(kind, bad):
    with pytest.raises(TableError) as error:
        table((kind, 16)).insert([bad], DROP, 0 if kind == "lpm" else 1)
    assert code(error) == Code.INVALID_ARGUMENT


def test_modify_keeps_the_counter_and_delete_takes_the_entry_away():
    t = table(("lpm", 8))
    entry = t.insert([(0x10, 4)], DROP)
    entry.packets = 5
    assert t.modify([(0x10, 4)], ActionCall("set", (1,))) is entry
    assert (entry.call, entry.packets) == ((1, (1,)), 5)
    t.delete([(0x10, 4)])
    assert t.lookup(0x11) is t.miss
    for operation in (t.delete, t.get, lambda m: t.modify(m, DROP)):
        with pytest.raises(TableError) as error:
            operation([(0x10, 4)])
        assert code(error) == Code.NOT_FOUND


def test_a_const_default_cannot_change():
    t = table(("exact", 8), default_const=True)
    t.set_default(DROP)
    for operation in (lambda: t.set_default(ActionCall("set", (1,))), t.reset_default):
        with pytest.raises(TableError) as error:
            operation()
        assert code(error) == Code.PERMISSION_DENIED


def test_const_entries_cannot_change():
    t = table(("exact", 8))
    t.load_const_entries([([1], 0, DROP)])
    assert next(t.entries()).is_const
    for operation in (lambda: t.insert([2], DROP), lambda: t.delete([1]), lambda: t.modify([1], DROP)):
        with pytest.raises(TableError) as error:
            operation()
        assert code(error) == Code.PERMISSION_DENIED


def test_the_default_action_is_set_and_reset():
    t = table()
    assert (t.default, t.miss.call) == (DROP, (2, ()))
    t.set_default(ActionCall("set", (9,)))
    assert t.miss.call == (1, (9,))
    t.reset_default()
    assert t.miss.call == (2, ())
    with pytest.raises(TableError) as error:
        t.insert([], DROP)
    assert code(error) == Code.INVALID_ARGUMENT


def test_lookups_are_remembered_until_the_table_changes():
    t = table(("ternary", 8))
    assert t.lookup(5) is t.miss
    assert t.cache == {5: t.miss}
    low = t.insert([(4, 4)], DROP, 1)
    assert t.cache == {}
    assert t.lookup(5) is low
    high = t.insert([(1, 1)], DROP, 2)
    assert t.lookup(5) is high
    t.delete([(1, 1)], 2)
    assert t.lookup(5) is low


KINDS = st.sampled_from(["exact", "lpm", "ternary", "range", "optional"])


def match_of(draw, kind, width=4):
    top = (1 << width) - 1
    value = draw(st.integers(0, top))
    if kind == "exact":
        return value
    if kind == "optional":
        return draw(st.sampled_from([value, None]))
    if kind == "lpm":
        length = draw(st.integers(0, width))
        return value & (top ^ (top >> length)), length
    if kind == "ternary":
        mask = draw(st.integers(0, top))
        return value & mask, mask
    return value, draw(st.integers(value, top))


def matches(kind, m, value, width=4):
    if kind == "exact":
        return m == value
    if kind == "optional":
        return m is None or m == value
    if kind == "lpm":
        return value >> (width - m[1]) == m[0] >> (width - m[1])
    if kind == "ternary":
        return value & m[1] == m[0]
    return m[0] <= value <= m[1]


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_every_lookup_agrees_with_trying_each_entry(data):
    kinds = data.draw(st.lists(KINDS, min_size=1, max_size=3).filter(lambda ks: ks.count("lpm") <= 1))
    t = table(*((kind, 4) for kind in kinds), size=1000)
    entries = []
    for _ in range(data.draw(st.integers(0, 12))):
        match = [match_of(data.draw, kind) for kind in kinds]
        priority = data.draw(st.integers(1, 4)) if t.prioritised else 0
        if (tuple(match), priority) not in {(e.match, e.priority) for e in entries}:
            entries.append(t.insert(match, DROP, priority))
        if entries and data.draw(st.booleans()) and data.draw(st.booleans()):
            gone = entries.pop(data.draw(st.integers(0, len(entries) - 1)))
            t.delete(gone.match, gone.priority)
    for _ in range(10):
        key = tuple(data.draw(st.integers(0, 15)) for _ in kinds)
        hits = [e for e in entries if all(map(matches, kinds, e.match, key))]
        if t.prioritised:
            hits.sort(key=lambda e: -e.priority)
        elif "lpm" in kinds:
            hits.sort(key=lambda e: -e.match[kinds.index("lpm")][1])
        expected = hits[0] if hits else t.miss
        assert t.lookup(key if len(key) > 1 else key[0]) is expected
