"""Grouping, and numbers that stay with their holders and are freed late."""

from ipaddress import ip_address

from hypothesis import given
from hypothesis import strategies as st

from controlplane.groups import GroupTable, Numbers, group_flows
from controlplane.model import FiveTuple, Group, Link

NORTH, SOUTH = (Link("S1", 1),), (Link("S1", 2), Link("S2", 1))
SECOND = 10**9


def flow(port):
    return FiveTuple(ip_address("10.0.1.1"), ip_address("10.0.2.1"), 6, port, 5000)


def test_flows_of_one_job_and_path_make_a_group():
    groups, group_of = group_flows(
        [("f", "a", NORTH), ("g", "b", NORTH), ("h", "a", NORTH), ("i", "a", SOUTH)]
    )
    assert groups == [Group("1", "a", NORTH), Group("2", "b", NORTH), Group("3", "a", SOUTH)]
    assert group_of == {"f": "1", "g": "2", "h": "1", "i": "3"}


def test_numbers_start_at_1_and_stay():
    numbers = Numbers(10, SECOND)
    assert numbers.keep("ab", 0) == {"a": 1, "b": 2}
    assert numbers.keep("cb", 1) == {"c": 3, "b": 2}


def test_a_number_is_free_only_late_and_the_smallest_goes_first():
    numbers = Numbers(10, SECOND)
    numbers.keep("abc", 0)
    numbers.keep("c", 10)
    assert numbers.keep("cd", SECOND) == {"c": 3, "d": 4}  # a and b have been gone for less than a second
    assert numbers.keep("cde", SECOND + 10) == {"c": 3, "d": 4, "e": 1}
    assert numbers.keep("cdef", SECOND + 10)["f"] == 2


def test_who_comes_back_in_time_has_its_number_again():
    numbers = Numbers(10, SECOND)
    numbers.keep("ab", 0)
    numbers.keep("b", 10)
    assert numbers.keep("ab", SECOND) == {"a": 1, "b": 2}
    assert numbers.keep("abc", 3 * SECOND)["c"] == 3


def test_without_a_free_number_a_holder_is_left_out():
    numbers = Numbers(2, SECOND)
    assert numbers.keep("abc", 0) == {"a": 1, "b": 2}
    assert numbers.keep("ac", 10) == {"a": 1, "c": 2}


def test_without_a_free_number_the_one_that_rests_for_longest_is_handed_out():
    numbers = Numbers(4, SECOND)
    numbers.keep("abcd", 0)
    numbers.keep("bcd", 1)
    numbers.keep("bd", 2)
    numbers.keep("bcd", 3)
    numbers.keep("bd", 4)
    assert numbers.keep("bdx", 5) == {"b": 2, "d": 4, "x": 1}
    assert numbers.keep("bdxc", 6) == {"b": 2, "d": 4, "x": 1, "c": 3}  # who is back is nobody's spare


def test_jobs_that_come_and_go_use_up_nobody_elses_numbers():
    table = GroupTable(8, 8, 60 * SECOND)
    for run in range(20):  # one tenant's flow, under another job id each time
        table.place({flow(1): (f"evil-{run}", NORTH), flow(1000 + run): ("evil", NORTH)}, run)
    placed = table.place({flow(1): ("evil", NORTH), flow(2): ("honest", NORTH)}, 20)
    assert placed.unplaced == ()


def test_saved_numbers_are_handed_out_again():
    numbers = Numbers(10, SECOND, {"a": 4, "b": 2, "z": 99})
    assert numbers.keep("xab", 0) == {"x": 1, "a": 4, "b": 2}
    assert numbers.keep("xaby", 0)["y"] == 3
    assert numbers.keep("xabyw", 0)["w"] == 5


@given(st.lists(st.tuples(st.sets(st.sampled_from("abcdefgh")), st.integers(0, SECOND)), max_size=20))
def test_no_number_is_ever_held_twice(history):
    numbers, now = Numbers(6, SECOND), 0
    for holders, later in history:
        now += later
        held = numbers.keep(sorted(holders), now)
        resting = numbers.resting()
        assert held.items() <= resting.items()
        assert len(set(resting.values())) == len(resting)
        assert all(1 <= number <= 6 for number in resting.values())


def test_a_table_places_flows_and_survives_a_restart():
    table = GroupTable(100, 100, SECOND)
    wanted = {flow(1): ("a", NORTH), flow(2): ("b", NORTH), flow(3): ("a", NORTH)}
    placed = table.place(wanted, 0)
    assert placed.groups == (Group("1", "a", NORTH), Group("2", "b", NORTH))
    assert placed.flows == {flow(1): ("1", 1), flow(2): ("2", 2), flow(3): ("1", 3)}
    assert placed.number == {"1": 1, "2": 2}
    again = GroupTable(100, 100, SECOND, table.group_numbers(), table.slot_numbers())
    backwards = dict(reversed(wanted.items()))
    assert again.place(backwards, 0).flows == placed.flows


def test_a_flow_whose_path_changes_keeps_its_slot_and_changes_group():
    table = GroupTable(100, 100, SECOND)
    table.place({flow(1): ("a", NORTH), flow(2): ("a", NORTH)}, 0)
    placed = table.place({flow(1): ("a", NORTH), flow(2): ("a", SOUTH)}, 1)
    assert placed.flows == {flow(1): ("1", 1), flow(2): ("2", 2)}


def test_flows_without_room_are_named():
    table = GroupTable(1, 2, SECOND)
    placed = table.place({flow(1): ("a", NORTH), flow(2): ("b", NORTH), flow(3): ("a", NORTH)}, 0)
    assert placed.flows == {flow(1): ("1", 1)}
    assert placed.unplaced == (flow(2), flow(3))
    assert placed.groups == (Group("1", "a", NORTH),)
