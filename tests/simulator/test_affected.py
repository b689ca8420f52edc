"""Whose rates a change makes the engine compute again."""

import numpy as np
import pytest

from controlplane.policies import Scope
from simulator import affected, engine, waterfill
from simulator.plan import Flows
from simulator.state import NONE, WAITING

CAPACITY = [1.0] * 6


def marked(state):
    found = []
    for component in state.waiting[: state.counts[WAITING]]:
        affected.drop_inactive(state, component)
        found += state.queue[state.queue_first[component] : state.queue_last[component]].tolist()
    return sorted(found)


def test_a_flow_is_held_by_its_full_link_or_by_its_limit(started):
    # Flows 0 and 1 share link 0; flow 2 has link 1 to itself.
    state = started(
        [(Flows((0,), 1.0),), (Flows((0,), 1.0),), (Flows((1,), 1.0),)], CAPACITY, 1, Scope.FABRIC
    )
    assert state.rate.tolist() == [0.5, 0.5, 1]
    assert state.held.tolist() == [0, 0, NONE]


def test_the_end_of_a_flow_marks_those_it_held_back_only(started):
    flows = [(Flows((0,), 1.0),), (Flows((0, 1), 2.0),), (Flows((1,), 2.0),), (Flows((3,), 2.0),)]
    # Link 1 is wide enough for both of its flows, so link 0 holds flow 1.
    state = started(flows, [1.0, 1.5, 1.0, 1.0], 1, Scope.FABRIC)
    assert state.rate.tolist() == pytest.approx([0.5, 0.5, 1, 1])
    affected.detach(state, 0)
    assert marked(state) == [1]
    # Flow 1 takes what flow 0 leaves, and so takes from flow 2 on link 1; flow 3 is never looked at.
    engine.refresh(state, 0.0)
    assert state.rate.tolist() == pytest.approx([0, 0.75, 0.75, 1])


def test_a_lower_flow_does_not_disturb_a_higher_one(started):
    state = started([(Flows((0,), 1.0),), (Flows((0,), 5.0),)], CAPACITY, 2, Scope.FABRIC)
    assert state.rate.tolist() == [1, 0]
    affected.detach(state, 1)
    assert marked(state) == []


def test_greedy_flows_yield_to_a_newcomer(started):
    state = started(
        [(Flows((0,), 1.0),), (Flows((0,), 5.0),), (Flows((1,), 5.0),)], CAPACITY, 2, Scope.FABRIC
    )
    state.rank[:2] = state.level[:2] = [0, 1]  # now flow 1 goes first
    affected.mark(state, 1)
    waterfill.fill_by_level(state, state.component[1])
    assert marked(state) == [0, 1]
    assert state.fresh.tolist()[:2] == [0, 1]


def test_an_ended_flow_leaves_the_queue(started):
    state = started([(Flows((0,), 1.0),)], CAPACITY, 1, Scope.FABRIC)
    affected.mark(state, 0)
    affected.detach(state, 0)
    assert marked(state) == []
    assert not state.marked.any()
    assert np.isinf(state.due[0])
