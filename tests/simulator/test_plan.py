import numpy as np
import pytest

from controlplane.policies.hermod import Key
from simulator.plan import NO_KEY, Flows, Phase, Plan

CAPACITY = np.array([1.0, 2.0])


def test_ideal_time_is_the_longest_chain():
    # 1 s, then 3 s of computing beside a communication whose busier link takes 4 s, then 1 s after both.
    phases = (
        Phase(duration=1),
        Phase((0,), duration=3),
        Phase((0,), flows=(Flows((0,), 2.0, 2), Flows((1,), 2.0))),
        Phase((1, 2), duration=1),
    )
    plan = Plan("a", phases, 1)
    assert plan.ideal_s(CAPACITY) == 6
    assert plan.compute_s == 5
    assert plan.link_seconds(CAPACITY) == {0: 4, 1: 1}


def test_phases_start_when_what_they_wait_for_has_ended():
    phases = (Phase(duration=1), Phase((0,), flows=(Flows((0,), 2.0),)), Phase((0, 1), duration=1))
    assert Plan("a", phases, 1).timeline(CAPACITY) == [(0, 1), (1, 3), (3, 4)]


def test_a_path_is_one_group_of_two_phases_unless_their_keys_differ():
    flows = (Flows((0, 1), 1.0),)
    assert Plan("a", (Phase(flows=flows), Phase((0,), flows=flows)), 1).groups == (((0, 1), NO_KEY),)
    later = Key(layer=1)
    assert Plan("a", (Phase(flows=flows), Phase((0,), flows=flows, key=later)), 1).groups == (
        ((0, 1), NO_KEY),
        ((0, 1), later),
    )


def test_no_flow_no_link():
    assert Plan("a", (Phase(duration=2),), 1).ideal_s(CAPACITY) == pytest.approx(2)
