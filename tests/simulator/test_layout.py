"""Which links and flows have to do with each other."""

import numpy as np

from controlplane.policies import Scope
from simulator import engine
from simulator.plan import Flows

CAPACITY = [1.0, 1.0, 1.0, 4.0, 1.0, 1.0]


def parts(state):
    """The flows of each component."""
    found = {}
    for flow, component in enumerate(state.component.tolist()):
        found.setdefault(component, []).append(flow)
    return sorted(found.values())


def test_flows_that_share_a_link_that_could_be_full_are_of_one_component(started):
    # Link 0 joins flows 0 and 1, link 1 flows 1 and 2; all of them cross link 3, which has room for all.
    paths = [(0, 3), (0, 3, 1), (3, 1), (2, 3), (2,)]
    state = started([(Flows(path, 1.0),) for path in paths], CAPACITY, 1, Scope.FABRIC)
    assert parts(state) == [[0, 1, 2], [3, 4]]


def test_links_that_cannot_be_full_are_left_out_at_both_ends(started):
    flows = [(Flows((3, 0, 4), 1.0),), (Flows((0,), 1.0),)]
    state = started(flows, CAPACITY, 1, Scope.FABRIC)
    near, far = state.near[0], state.far[0]
    assert state.entry_link[near:far].tolist() == [0]
    assert state.first[4] == state.last[4]


def test_a_flow_that_nothing_can_hold_back_runs_at_its_limit_at_once(started):
    state = started([(Flows((2, 3), 3.0),), (Flows((3, 5), 1.0),)], CAPACITY, 1, Scope.FABRIC)
    assert parts(state) == [[0], [1]]
    assert state.rate.tolist() == [1, 1]
    assert engine.advance(state, 2.0, True) == 1.0
    assert state.done.tolist() == [0, 1]


def test_components_follow_from_new_paths(started):
    state = started([(Flows((0,), 4.0),), (Flows((1,), 4.0),)], CAPACITY, 1, Scope.FABRIC)
    assert parts(state) == [[0], [1]]
    engine.reroute(state, np.array([1, 1]), 0.0)
    assert parts(state) == [[0, 1]]
    engine.refresh(state, 0.0)
    assert state.rate.tolist() == [0.5, 0.5]
    engine.reroute(state, np.array([1, 2]), 0.0)
    assert parts(state) == [[0], [1]]
    engine.refresh(state, 0.0)
    assert state.rate.tolist() == [1, 1]
