"""The bottleneck condition, and that recomputing only what changed changes nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.policies import Scope
from simulator import affected, assemble, engine
from simulator.affected import mark
from simulator.least import LANES
from simulator.plan import Flows

LINKS = 5
path = st.lists(st.integers(0, LINKS - 1), min_size=1, max_size=3, unique=True).map(tuple)
flow = st.builds(Flows, path, st.integers(1, 20).map(float), st.integers(1, 3))
job = st.lists(flow, min_size=1, max_size=4, unique_by=lambda f: f.path).map(tuple)
jobs = st.lists(job, min_size=1, max_size=6)
capacities = st.lists(st.sampled_from([1.0, 2.0, 3.0, 7.0]), min_size=LINKS, max_size=LINKS)


def entries(state, number):
    return range(state.flow_entry[number], state.flow_entry[number + 1])


def check_rates(state):
    """No link is overfilled; each flow has a full link with nothing behind it and nobody equal getting more.

    That is at once work conservation, no level inversion, and max-min within a level.
    """
    rate, level = state.rate, state.level
    on_link = {
        link: [
            (state.entry_flow[e], e)
            for e in np.flatnonzero(state.entry_link == link)
            if state.active[state.entry_flow[e]]
        ]
        for link in range(len(state.capacity))
    }
    used = {link: sum(rate[f] * state.width[f] for f, _ in on) for link, on in on_link.items()}
    for link, total in used.items():
        assert total <= state.capacity[link] * (1 + 1e-9)
    for own in np.flatnonzero(state.active):
        held = False
        for entry in entries(state, own):
            link = state.entry_link[entry]
            others = on_link[link]
            full = used[link] >= state.capacity[link] * (1 - 1e-9)
            behind = all(rate[f] <= 1e-9 for f, e in others if level[e] < level[entry])
            equal = all(rate[f] <= rate[own] + 1e-9 for f, e in others if level[e] == level[entry])
            held = held or (full and behind and equal)
        assert held


@settings(max_examples=150, deadline=None)
@given(jobs, capacities, st.integers(1, 7), st.sampled_from(list(Scope)))
def test_rates_conserve_work_and_invert_no_level(started, all_flows, capacity, count, scope):
    if scope is Scope.PORT:
        count = max(count, len(all_flows))  # fewer levels may tie flows that wait for each other in a circle
    check_rates(started(all_flows, capacity, count, scope))


@settings(max_examples=100, deadline=None)
@given(jobs, capacities, st.integers(1, 3))
def test_scope_port_with_few_levels_overfills_no_link(started, all_flows, capacity, count):
    state = started(all_flows, capacity, count, Scope.PORT)
    for link in range(LINKS):
        on_link = [
            f for f in range(len(state.rate)) for e in entries(state, f) if state.entry_link[e] == link
        ]
        assert sum(state.rate[f] * state.width[f] for f in on_link) <= state.capacity[link] * (1 + 1e-9)


@settings(max_examples=100, deadline=None)
@given(jobs, capacities, st.integers(1, 7), st.sampled_from(list(Scope)), st.integers(1, 25))
def test_recomputing_what_changed_equals_recomputing_everything(
    started, all_flows, capacity, count, scope, steps
):
    if scope is Scope.PORT:
        count = max(count, len(all_flows))
    state = started(all_flows, capacity, count, scope)
    now = 0.0
    for _ in range(steps):
        now = engine.advance(state, 1e9, True)
        state = assemble.change(state, np.isinf(state.ended), [], [])
        engine.refresh(state, now)
    before = state.rate.copy()
    for number in np.flatnonzero(state.active):
        mark(state, number)
    engine.refresh(state, now)
    assert state.rate == pytest.approx(before, abs=1e-9)
    check_rates(state)


@settings(max_examples=100, deadline=None)
@given(jobs, capacities, st.lists(st.lists(st.integers(0, 3), min_size=6, max_size=6), max_size=6))
def test_new_levels_reach_all_that_they_concern(started, all_flows, capacity, rankings):
    state = started(all_flows, capacity, 4, Scope.FABRIC)
    for ranking in rankings:
        job_of_entry = state.phase_job[state.flow_phase[state.entry_flow]]
        engine.set_levels(state, np.array(ranking)[job_of_entry], False, 0.0, 0.0)
        engine.refresh(state, 0.0)
        check_rates(state)


def test_a_flow_that_stops_lower_makes_room_for_others(started):
    # Flow 2 comes to link 0: flow 0 gets less, flow 1 more of link 1, and flow 3, a level lower, less of 2.
    flows = [(Flows((0, 1), 9.0),), (Flows((1, 2), 9.0),), (Flows((0,), 9.0),), (Flows((2,), 9.0),)]
    state = started(flows, [1.0, 2.0, 3.0, 1.0, 1.0], 1, Scope.FABRIC)
    affected.detach(state, 2)
    engine.set_levels(state, np.array([1, 1, 1, 1, 1, 0]), False, 0.0, 0.0)
    engine.refresh(state, 0.0)
    assert state.rate.tolist() == [1, 1, 0, 2]
    affected.attach(state, 2)
    engine.refresh(state, 0.0)
    assert state.rate.tolist() == [0.5, 1.5, 0.5, 1.5]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_many_links_that_fill_up_one_by_one(started, seed, count):
    # More than one step of `narrowest`, with capacities that seldom tie.
    random = np.random.default_rng(seed)
    capacity = random.uniform(1, 5, 6 * LANES)
    pairs = [random.choice(len(capacity), 2, replace=False).tolist() for _ in range(8 * LANES)]
    flows = [Flows((one, other), 9.0) for one, other in pairs]
    state = started(list(zip(flows[::2], flows[1::2], strict=True)), capacity, count, Scope.FABRIC)
    if count == 1:
        assert np.bincount(state.component).max() > 3 * LANES  # flows that are filled together
    check_rates(state)
    for _ in range(20):
        now = engine.advance(state, 1e9, True)
        engine.refresh(state, now)
        check_rates(state)


def test_wide_rows_count_as_their_flows(started):
    # Three flows beside one on a link of 8: two each.
    state = started([(Flows((0,), 1.0, 3),), (Flows((0,), 1.0),)], [8.0] * LINKS, 1, Scope.FABRIC)
    assert state.rate.tolist() == [2, 2]


def test_a_row_alone_gets_its_whole_path(started):
    state = started([(Flows((0, 1), 1.0, 2),)], [8.0, 6.0, 1.0, 1.0, 1.0], 1, Scope.FABRIC)
    assert state.rate.tolist() == [3]
