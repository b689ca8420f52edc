"""Levels that differ along a path."""

import numpy as np
import pytest

from controlplane.policies import Scope
from simulator import engine
from simulator.plan import Flows


@pytest.fixture
def rates(started):
    """A function that gives rates under a level per flow and hop."""

    def find(all_flows, capacity, levels):
        state = started(all_flows, capacity, 1, Scope.FABRIC)
        engine.set_levels(state, np.array([level for row in levels for level in row]), True, 0.0, 0.0)
        engine.refresh(state, 0.0)
        return state.rate.tolist()

    return find


def test_a_flow_held_back_elsewhere_leaves_its_share(rates):
    # g is beside f on link 0, but h goes before it on link 1 and takes all of that.
    f, g, h = Flows((0,), 1.0), Flows((0, 1), 1.0), Flows((1,), 1.0)
    assert rates([(f,), (g,), (h,)], [10.0, 10.0, 1.0, 1.0, 1.0], [[0], [0, 0], [1]]) == [10, 0, 10]


def test_a_partly_held_flow_leaves_the_rest(rates):
    f, g, h = Flows((0,), 1.0), Flows((0, 1), 1.0), Flows((1, 2), 1.0)
    found = rates([(f,), (g,), (h,)], [10.0, 10.0, 8.0, 1.0, 1.0], [[0], [0, 0], [1, 0]])
    assert found == pytest.approx([8, 2, 8])


def test_first_on_one_link_equal_on_the_next(rates):
    # One goes before two on link 0; both are equal on link 1, which is the narrow one.
    one, two = Flows((0, 1), 1.0), Flows((1, 0), 1.0)
    assert rates([(one,), (two,)], [10.0, 4.0, 1.0, 1.0, 1.0], [[1, 0], [0, 0]]) == pytest.approx([2, 2])
    assert rates([(one,), (two,)], [4.0, 6.0, 1.0, 1.0, 1.0], [[1, 0], [0, 0]]) == pytest.approx([4, 0])


def test_a_circle_ends_and_overfills_nothing(rates):
    # Each of three flows goes before the next on the link that the two share.
    flows = [(Flows((0, 1), 1.0),), (Flows((1, 2), 1.0),), (Flows((2, 0), 1.0),)]
    a, b, c = rates(flows, [1.0] * 5, [[1, 0], [1, 0], [1, 0]])
    assert max(a + b, b + c, c + a) <= 1 + 1e-9
