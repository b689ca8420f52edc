import pytest

from softswitch.entries import ActionCall, Entry, KeyField


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("exact", [0, 255], [256, -1, None, (1, 1)]),
        ("optional", [None, 0, 255], [256, (1, 1)]),
        ("lpm", [(0, 0), (0x80, 1), (0xFF, 8)], [(0x80, 0), (0x81, 1), (0, 9), (0x100, 8), (0, -1), 7, None]),
        ("ternary", [(0, 0), (0x10, 0xF0), (0xFF, 0xFF)], [(0x11, 0xF0), (0, 0x100), (-1, 0xFF), (1,), 7]),
        ("range", [(0, 255), (7, 7)], [(8, 7), (0, 256), (-1, 3), 7]),
    ],
)
def test_a_field_admits_canonical_matches_of_its_kind(kind, good, bad):
    field = KeyField("f", kind, 8)
    assert [m for m in good if not field.admits(m)] == []
    assert [m for m in bad if field.admits(m)] == []


def test_a_new_entry_has_counted_nothing_and_chosen_nothing():
    entry = Entry((1, (2, 3)), 4, ActionCall("go", (5,)))
    assert (entry.packets, entry.bytes, entry.meter, entry.target, entry.last_hit_ns) == (0, 0, None, None, 0)
    entry.last_hit_us = 7
    assert entry.last_hit_ns == 7000
    assert repr(entry) == "Entry((1, (2, 3)), priority=4, ActionCall(name='go', args=(5,)))"
