"""What is due first, against a plain minimum."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simulator import agenda, assemble
from simulator.plan import Flows, Phase, Plan

times = st.one_of(st.integers(0, 5).map(float), st.just(np.inf))


def state_of(jobs):
    plans = [
        Plan(f"job{n}", (Phase(duration=1.0), Phase((0,), flows=(Flows((0,), 1.0),))), 1) for n in range(jobs)
    ]
    return assemble.change(assemble.empty(np.array([1.0]), 0), np.zeros(0, bool), plans, [0] * jobs)


@given(st.integers(1, 9), st.lists(st.tuples(st.integers(0, 35), times), min_size=1))
def test_the_first_time_is_the_earliest_and_names_who_it_is(jobs, puts):
    state = state_of(jobs)
    items = 4 * jobs  # per job a flow, two phases and itself
    due = [np.inf] * items
    for item, time in puts:
        agenda.put(state, item % items, time)
        due[item % items] = time
        assert agenda.first_time(state) == min(due)
        if min(due) < np.inf:
            assert due[agenda.first_due(state, min(due))] == min(due)
    assert [*state.due, *state.timer, *state.paused] == due
    soonest = state.soonest.copy()
    agenda.build(state)
    assert state.soonest.tolist() == soonest.tolist()


def test_phases_and_jobs_have_items_of_their_own():
    state = state_of(2)
    agenda.put_phase(state, 3, 5.0)
    agenda.put_job(state, 1, 4.0)
    assert state.timer.tolist() == [np.inf, np.inf, np.inf, 5]
    assert state.paused.tolist() == [np.inf, 4]
    assert agenda.first_due(state, 4.0) == 2 + 4 + 1


def test_nothing_is_due_without_jobs():
    assert agenda.first_time(assemble.empty(np.array([1.0]), 0)) == np.inf
