import pytest

from controlplane.southbound.room import MARGIN, Room, fit
from controlplane.southbound.tables import FLOW_TABLES, Call

SIZES = dict.fromkeys((*FLOW_TABLES, "group_level"), 8)


def contents(**rows):
    """Table -> rows, where a row is named by its number: its key, and its group."""
    return {
        table: {(number,): Call("set_group", (number, number)) for number in rows.get(table, ())}
        for table in SIZES
    }


def kept(room, wanted, held=(), groups=None):
    rows = room.flows(contents(flow_group_v4=wanted), contents(flow_group_v4=held), groups)
    return sorted(key[0] for key in rows["flow_group_v4"])


@pytest.fixture
def room():
    room = Room(SIZES)
    room.rates = {number: number / 1000 for number in range(1, 100)}
    return room


def test_the_lowest_rates_keep_their_place_and_the_rest_are_counted(room):
    assert kept(room, range(1, 9)) == list(range(1, 9))
    assert room.left_out() == {}
    assert kept(room, range(12, 0, -1)) == list(range(1, 9))
    assert room.left_out() == {"flow_group_v4": {9: 1, 10: 1, 11: 1, 12: 1}}


def test_a_group_without_a_rate_goes_last_and_the_order_wanted_decides_between_equals(room):
    room.rates = {5: 0.9}
    assert kept(room, range(1, 20)) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert kept(room, range(19, 0, -1)) == [5, 13, 14, 15, 16, 17, 18, 19]


def test_who_holds_a_place_loses_it_only_by_a_margin(room):
    held = range(2, 10)
    assert kept(room, range(1, 10), held) == list(held)
    room.rates = {**room.rates, 9: 0.001 + MARGIN + 0.001}
    assert kept(room, range(1, 10), held) == list(range(1, 9))


def test_what_a_switch_refuses_is_learnt_and_a_little_more_is_tried_later(room):
    assert room.learn([("flow_group_v4", (7,))], contents(flow_group_v4=[1, 2, 3]), made_way=False)
    assert room.capacity("flow_group_v4") == 3
    assert room.capacity("flow_group_v6") == 8
    assert kept(room, range(1, 6)) == [1, 2, 3]
    assert not room.grew
    room.try_more()
    assert room.capacity("flow_group_v4") == 8
    assert kept(room, range(1, 6)) == [1, 2, 3, 4, 5]
    assert not room.learn([], contents(), made_way=False)


def test_growth_goes_on_while_nothing_is_refused():
    room = Room(dict.fromkeys(SIZES, 5000))
    room.learn([("flow_group_v4", (7,))], contents(flow_group_v4=[1, 2, 3]), made_way=False)
    room.try_more()
    assert (room.capacity("flow_group_v4"), room.grew) == (1003, True)
    room.learn([("flow_group_v4", (9,))], contents(flow_group_v4=[1, 2, 3, 4]), made_way=False)
    assert (room.capacity("flow_group_v4"), room.grew) == (4, False)


def test_a_row_that_is_refused_although_others_made_way_does_not_drive_them_all_out(room):
    room.learn([("flow_group_v4", (1,))], contents(flow_group_v4=[2, 3, 4]), made_way=False)
    assert kept(room, range(1, 6)) == [1, 2, 3]
    room.learn([("flow_group_v4", (1,))], contents(flow_group_v4=[2, 3]), made_way=True)
    assert kept(room, range(1, 6)) == [2, 3, 4]
    assert room.left_out() == {"flow_group_v4": {1: 1, 5: 1}}
    room.try_more()
    assert kept(room, range(1, 6)) == [1, 2, 3, 4, 5]


def test_groups_need_a_row_in_both_banks_and_flows_of_others_none(room):
    wanted = {number: Call("set_level", (number, 0, 0)) for number in range(1, 7)}
    assert room.for_groups(4)
    assert not room.for_groups(5)
    groups = room.groups(wanted, held={6})
    assert sorted(groups) == [1, 2, 3, 6]
    assert kept(room, range(1, 7), groups=groups) == [1, 2, 3, 6]
    assert room.left_out() == {"flow_group_v4": {4: 1, 5: 1}}


def test_nothing_is_known_of_new_tables(room):
    room.learn([("flow_group_v4", (7,))], contents(flow_group_v4=[1]), made_way=False)
    room.forget()
    assert room.capacity("flow_group_v4") == 8


def test_fit_is_stable():
    rows = {letter: Call("set_group", (1, 1)) for letter in "dbca"}
    assert list(fit(rows, (), 3, lambda *_: 0.5)) == ["d", "b", "c"]
    assert list(fit(rows, {"a"}, 3, lambda *_: 0.5)) == ["a", "d", "b"]


def test_room_for_all_flows_leaves_nothing_out(room):
    kept(room, range(1, 13))
    assert room.left_out()
    assert not room.for_flows({"flow_group_v4": 12, "flow_group_v6": 0})
    assert room.left_out(), "nothing has changed"
    assert room.for_flows({"flow_group_v4": 8, "flow_group_v6": 8})
    assert room.left_out() == {}


def test_no_room_for_all_flows_where_a_table_refused_some(room):
    room.learn([("flow_group_v4", (7,))], contents(flow_group_v4=[1, 2, 3]), made_way=True)
    assert not room.for_flows({"flow_group_v4": 1})
