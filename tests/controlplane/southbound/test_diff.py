"""The invariants of a re-ranking, held after every single update, in any order within a phase."""

import random
from functools import partial
from ipaddress import IPv4Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.model import FiveTuple
from controlplane.southbound import FlowEntry, GroupLevel, LevelQueue, NextHop, Setup, diff
from controlplane.southbound.contract import CONTRACT
from controlplane.southbound.diff import Change, Step
from controlplane.southbound.tables import (
    FORWARDING_TABLES,
    Call,
    active_bank,
    bank_rows,
    flow_rows,
    flow_rows_in_parts,
    group_rows,
    setup_rows,
)

A, B = IPv4Address("10.0.1.1"), IPv4Address("10.0.2.2")


def empty():
    return {table: {} for table in CONTRACT}


def rows(*, levels=(0, 1, 2, 3, 4, 5, 6), routes=None):
    return setup_rows(
        Setup({level: LevelQueue(level) for level in levels}, 1, frozenset({1}), frozenset({2}), routes or {})
    )


def flow(number):
    return FiveTuple(A, B, 6, 1000 + number, 2000)


def flows(group_of):
    return flow_rows({flow(number): FlowEntry(group, number) for number, group in group_of.items()})


def run(installed, setup, groups, wanted_flows):
    """Write the whole plan; return [(step, changes)]."""
    done = []
    calls = None if groups is None else group_rows(groups)
    wanted = None if wanted_flows is None else lambda: iter([wanted_flows])
    for phase in diff.plan(installed, setup, calls, wanted):
        changes = list(phase.changes)
        diff.apply(installed, changes)
        done.append((phase.step, changes))
    return done


def test_a_re_ranking_is_the_difference_to_the_idle_bank_then_one_flip():
    switch, setup = empty(), rows()
    for first, second in ((0, 1), (1, 0)):
        run(switch, setup, {1: GroupLevel(first), 2: GroupLevel(second)}, flows({1: 1, 2: 2}))
    bank = 1 - active_bank(switch)
    # The idle bank holds the ranking before last, in which group 1 had level 0: only group 2 is written.
    assert run(switch, setup, {1: GroupLevel(0), 2: GroupLevel(2)}, flows({1: 1, 2: 2})) == [
        (Step.BANK, [Change("group_level", (bank, 2), Call("set_level", (2, 0, 0)))]),
        (Step.FLIP, [Change("active_bank", (), Call("set_bank", (bank,)))]),
    ]


def test_back_to_the_ranking_before_is_the_flip_alone():
    switch, setup = empty(), rows()
    first, second = {1: GroupLevel(0)}, {1: GroupLevel(1)}
    for groups in (first, second):
        run(switch, setup, groups, flows({1: 1}))
    assert [(step, len(changes)) for step, changes in run(switch, setup, first, flows({1: 1}))] == [
        (Step.FLIP, 1)
    ]


def test_nothing_to_do_is_no_phase():
    switch, setup = empty(), rows()
    run(switch, setup, {1: GroupLevel(3)}, flows({1: 1}))
    assert run(switch, setup, {1: GroupLevel(3)}, flows({1: 1})) == []
    assert run(switch, setup, None, None) == []


def test_none_leaves_flows_and_ranking_alone():
    switch = empty()
    run(switch, rows(), {1: GroupLevel(3)}, flows({1: 1}))
    done = run(switch, rows(levels=(0, 1, 2, 3, 4)), None, None)
    assert [step for step, _ in done] == [Step.CLEANUP]
    assert {change.table for _, changes in done for change in changes} == {"level_queue"}
    assert switch["flow_group_v4"]
    assert bank_rows(switch, active_bank(switch)) == group_rows({1: GroupLevel(3)})


def test_tables_that_are_not_wanted_are_left_alone():
    switch = empty()
    hops = (NextHop(1, "02:00:00:00:00:01"),)
    run(switch, rows(routes={ip_network("10.0.0.0/8"): hops}), None, None)
    ours = {table: these for table, these in rows().items() if table not in FORWARDING_TABLES}
    assert run(switch, ours, {1: GroupLevel(3)}, None)
    assert switch["ipv4_lpm"]
    assert switch["ecmp_seed"]


def test_only_inserts_what_is_not_there():
    switch, setup = empty(), rows()
    done = dict(run(switch, setup, {1: GroupLevel(3)}, flows({1: 1})))
    assert {change.replace for change in done[Step.FLOWS] + done[Step.BANK]} == {False}
    defaults = [change for change in done[Step.BASE] if change.key == ()]
    assert {change.table for change in defaults} == {"default_level", "burst_gap", "ecmp_seed", "int_node"}
    assert all(change.replace for change in defaults)
    moved = dict(run(switch, setup, {1: GroupLevel(3), 2: GroupLevel(3)}, flows({1: 2})))
    assert [change.replace for change in moved[Step.FLOWS]] == [True]


def test_routes_come_after_their_ecmp_members():
    hops = (NextHop(1, "02:00:00:00:00:01"), NextHop(2, "02:00:00:00:00:02"))
    many = rows(routes={ip_network("10.0.0.0/8"): hops})
    one = rows(routes={ip_network("10.0.0.0/8"): hops[:1]})
    switch = empty()
    done = dict(run(switch, many, None, None))
    assert "ecmp" in {change.table for change in done[Step.BASE]}
    assert {change.table for change in done[Step.ROUTES]} == {"ipv4_lpm"}
    back = run(switch, one, None, None)
    assert [(step, {change.table for change in changes}) for step, changes in back] == [
        (Step.ROUTES, {"ipv4_lpm"}),
        (Step.CLEANUP, {"ecmp"}),
    ]


ranking = st.dictionaries(st.integers(1, 8), st.integers(0, 6).map(GroupLevel), max_size=8)


@st.composite
def wish(draw):
    groups = draw(ranking)
    members = st.sampled_from(sorted(groups)) if groups else st.nothing()
    return groups, draw(st.dictionaries(st.integers(1, 12), members, max_size=12))


@given(st.lists(wish(), min_size=2, max_size=5), st.randoms(use_true_random=False), st.integers(0, 40))
def test_every_ranking_is_in_force_as_a_whole_wherever_the_controller_dies(
    wishes, order: random.Random, death
):
    """Levels that flows see are all of the old or all of the new ranking, after each single update."""
    switch, setup = empty(), rows()
    in_force = {}
    for number, (groups, group_of) in enumerate(wishes):
        wanted = flows(group_of)
        target = group_rows(groups)
        old = dict(in_force)
        budget = death if number == len(wishes) - 1 else 10**9
        for phase in diff.plan(switch, setup, target, lambda wanted=wanted: iter([wanted])):
            changes = list(phase.changes)
            order.shuffle(changes)
            for change in changes:
                if budget == 0:
                    break
                budget -= 1
                diff.apply(switch, [change])
                now = bank_rows(switch, active_bank(switch))
                if phase.step >= Step.FLIP:
                    assert {group: now[group] for group in target} == target
                else:
                    assert now == old
                for call in switch["flow_group_v4"].values():
                    assert call.args[0] in now, (
                        "a flow points at a group that the bank in force does not know"
                    )
        in_force = bank_rows(switch, active_bank(switch))
    # Whoever comes next reads back what is there and finishes it.
    groups, group_of = wishes[-1]
    run(switch, setup, groups, flows(group_of))
    assert bank_rows(switch, active_bank(switch)) == group_rows(groups)
    assert switch["flow_group_v4"] == flows(group_of)["flow_group_v4"]
    assert {key[1] for key in switch["group_level"]} <= groups.keys()
    assert run(switch, setup, groups, flows(group_of)) == []


@pytest.mark.parametrize("foreign", [Call("action 4711"), Call("set_level", (9, 9, 9))])
def test_what_someone_else_wrote_is_written_over_or_deleted(foreign):
    switch, setup = empty(), rows()
    run(switch, setup, {1: GroupLevel(3)}, flows({1: 1}))
    bank = active_bank(switch)
    switch["group_level"][bank, 1] = foreign
    switch["group_level"][bank, 5] = foreign
    switch["flow_group_v4"][1, 2, 6, 3, 4] = Call("set_group", (9, 9))
    switch["edge_port"][7,] = Call("fabric_facing")
    run(switch, setup, {1: GroupLevel(3)}, flows({1: 1}))
    assert bank_rows(switch, active_bank(switch)) == group_rows({1: GroupLevel(3)})
    assert switch["flow_group_v4"] == flows({1: 1})["flow_group_v4"]
    assert set(switch["edge_port"]) == {(1,), (2,)}


def test_flows_in_parts_come_to_the_same_as_all_at_once():
    wanted = {flow(number): FlowEntry(1, number) for number in range(10)}
    apart, at_once = empty(), empty()
    parts = partial(flow_rows_in_parts, wanted, 3)
    phase = next(diff.plan(apart, {}, None, parts))
    changes = list(phase.changes)
    assert (phase.step, len(changes)) == (Step.FLOWS, 10)
    diff.apply(apart, changes)
    run(at_once, {}, None, flow_rows(wanted))
    assert apart == at_once
    assert list(diff.plan(apart, {}, None, lambda: iter([flow_rows(wanted)]))) == []
    assert list(diff.plan(empty(), {}, None, lambda: iter(()))) == []


def test_flows_in_parts_are_made_when_they_are_asked_for():
    made = []

    def parts():
        for number in range(3):
            made.append(number)
            yield flows({number: 1})

    phase = next(diff.plan(empty(), {}, None, parts))
    assert made == [0]
    next(phase.changes)
    assert made == [0]
    assert len(list(phase.changes)) == 2
    assert made == [0, 1, 2]
