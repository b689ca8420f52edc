import numpy as np
import pytest

from simulator import assemble, engine
from simulator.plan import Flows, Phase, Plan

CAPACITY = np.array([1.0, 1.0])


def job(name, link, target=2, volume=1.0):
    return Plan(name, (Phase(duration=1.0), Phase((0,), flows=(Flows((link,), volume),))), target)


def begin(state, keep, plans, now):
    first = int(np.sum(keep))
    state = assemble.change(state, np.array(keep, bool), plans, [0] * len(plans))
    engine.start_jobs(state, np.arange(first, first + len(plans)), now)
    engine.refresh(state, now)
    return state


def test_jobs_that_stay_go_on_where_they_were():
    state = begin(assemble.empty(CAPACITY, 0), [], [job("a", 0), job("b", 1, 1), job("c", 0, 9, 4.0)], 0.0)
    # b ends at 2; by then a and c share link 0, and a has sent half.
    assert engine.advance(state, 10.0, False) == 2.0
    assert state.ended.tolist() == [np.inf, 2.0, np.inf]
    state = begin(state, [True, False, True], [job("d", 0)], 2.0)
    assert state.job_phase.tolist() == [0, 2, 4, 6]
    assert state.done.tolist() == [0, 0, 0]
    assert state.rate.tolist() == [0.5, 0.5, 0]
    # a sends the rest by 3, when d begins to send: c and d share. a comes back at 4.
    assert engine.advance(state, 3.0, False) == 3.0
    assert state.done.tolist() == [1, 0, 0]
    assert state.rate.tolist() == [0, 0.5, 0.5]
    assert engine.advance(state, 4.0, False) == 4.0
    assert state.rate.tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3])


def test_what_a_job_leaves_behind_goes_to_those_that_stay():
    state = begin(assemble.empty(CAPACITY, 0), [], [job("a", 0, 1), job("b", 0, 1, 2.0)], 0.0)
    assert engine.advance(state, 10.0, False) == 3.0  # a ends; the new job on the other link disturbs nobody
    state = begin(state, [False, True], [job("c", 1)], 3.0)
    assert state.rate.tolist() == [1, 0]
    assert engine.advance(state, 10.0, False) == 4.0


def test_draws_are_the_same_for_a_seed():
    assert assemble.empty(CAPACITY, 1).noise.tolist() == assemble.empty(CAPACITY, 1).noise.tolist()
    assert assemble.empty(CAPACITY, 1).noise[0] != assemble.empty(CAPACITY, 2).noise[0]


def test_links_that_can_never_be_full_are_left_out():
    # Links 0 and 3 are of one flow each, link 1 is wide enough for both, link 2 is not.
    capacity = np.array([1.0, 2.0, 1.0, 1.0])
    paths = ((0, 1, 2), (1, 2, 3))
    plan = Plan("a", (Phase(flows=tuple(Flows(path, 1.0) for path in paths)),), 1)
    state = assemble.change(assemble.empty(capacity, 0), np.zeros(0, bool), [plan], [0])
    reach = [
        state.entry_link[state.near[flow] : state.far[flow]].tolist() for flow in range(len(state.width))
    ]
    assert reach == [[2], [2]]
