import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.model import Link
from controlplane.policies import POLICIES, Scope, hermod
from controlplane.policies.hermod import Key
from simulator.fabric import parallel
from simulator.plan import Flows, Phase, Plan
from simulator.ranking import Ranking, as_array, enter, sent
from simulator.scenario import PolicySection

FABRIC = parallel(3, 8)


def job(number, *paths, compute=1.0):
    flows = tuple(Flows(path, 1e9) for path in paths)
    plan = Plan(f"job{number}", (Phase(duration=compute), Phase((0,), flows=flows)), 9, gpus=2)
    return enter(number, plan, FABRIC, 0.0, {})


def test_what_the_policy_is_told():
    told = []

    def spy(jobs, groups, count, scope):
        told.append((jobs, groups, count, scope))
        return {}

    Ranking(spy, PolicySection(levels=4, scope="port")).levels([job(1, (0,), (1, 2), compute=2.0)], [3], 12.0)
    ((one,), groups, count, scope) = told[0]
    assert (one.id, one.rate, one.iterations) == ("job1", 0.75, 3)
    assert one.intensity == 4  # 2 GPUs x 2 s over 1 s on the busiest link
    assert [(group.id, group.path) for group in groups] == [
        ("job1/0", (Link("S1", 1),)),
        ("job1/1", (Link("S1", 2), Link("S1", 3))),
    ]
    assert (count, scope) == (4, Scope.PORT)


@pytest.mark.parametrize(
    ("done", "expected"),
    [
        ([0, 0, 5], {"job1": 7, "job2": 5, "job3": 4}),  # of levels 6, 5 ... by rank, 7 is the profiled job's
        ([1, 0, 5], {"job1": 5, "job2": 7, "job3": 5}),
        ([1, 1, 5], {"job1": 7, "job2": 6, "job3": 5}),
    ],
)
def test_one_new_job_of_a_component_is_profiled_at_a_time(done, expected):
    jobs = [job(1, (0,)), job(2, (0, 1)), job(3, (1,))]
    ranking = Ranking(POLICIES["leveller"], PolicySection(profile_iterations=1))
    levels = ranking.levels(jobs, done, 10.0)
    assert {one.plan.id: levels[one.groups[0].id][one.groups[0].path[0]] for one in jobs} == expected


def test_coflows_of_different_keys_are_groups_of_their_own():
    flows = (Flows((0,), 1e9), Flows((1,), 1e9))
    keys = [Key(layer=1), Key(layer=0), Key(layer=1)]
    plan = Plan("a", tuple(Phase(flows=flows, key=key) for key in keys), 9)
    one = enter(0, plan, FABRIC, 0.0, {})
    assert [(group.id, group.path[0].port, group.key.layer, group.load) for group in one.groups] == [
        ("a/0", 1, 1, 2e9),
        ("a/1", 2, 1, 2e9),
        ("a/2", 1, 0, 1e9),
        ("a/3", 2, 0, 1e9),
    ]
    levels = Ranking(hermod.levels, PolicySection(levels=4)).levels([one], [0], 1.0)
    assert as_array([one], levels)[0].tolist() == [2, 2, 3, 3, 2, 2]


def test_what_flows_have_sent(started):
    # Two flows share a link and one is alone; after 3 s of 9 the first two have sent 1.5 each.
    state = started([(Flows((0,), 9.0), Flows((1,), 9.0)), (Flows((0,), 3.0),)], [1.0, 1.0], 1, Scope.FABRIC)
    jobs = [
        enter(n, Plan(f"job{n}", (Phase(flows=flows),), 1), FABRIC, 0.0, {})
        for n, flows in enumerate([(Flows((0,), 9.0), Flows((1,), 9.0)), (Flows((0,), 3.0),)])
    ]
    found = sent(jobs, state, 3.0)
    assert found == pytest.approx({"job0/0": 1.5 / 9, "job0/1": 3 / 9, "job1/0": 1.5 / 3})
    told = {}

    def spy(jobs, groups, count, scope):
        told.update({group.id: group.sent for group in groups})
        return {}

    Ranking(spy, PolicySection()).levels(jobs, [0, 0], 3.0, {"job0/0": 0.5})
    assert told == {"job0/0": 0.5, "job0/1": None, "job1/0": None}


def test_levels_become_one_per_entry():
    jobs = [job(1, (0,), (1, 2)), job(2, (2,))]
    levels = {"job1/0": {Link("S1", 1): 3}, "job1/1": {Link("S1", 2): 4, Link("S1", 3): 5}}
    array, per_link = as_array(jobs, levels)
    assert array.tolist() == [3, 4, 5, 0]
    assert per_link
    assert as_array([], {})[0].dtype == np.int64


paths = st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True).map(tuple)


@given(
    st.lists(st.lists(paths, max_size=3, unique=True), max_size=4),
    st.sampled_from(list(Scope)),
    st.integers(1, 4),
)
def test_the_quick_way_to_the_array_gives_the_same(all_paths, scope, count):
    jobs = [job(n, *own) for n, own in enumerate(all_paths)]
    ranking = Ranking(POLICIES["leveller"], PolicySection(levels=count, scope=scope))
    for done in ([1] * len(jobs), list(range(len(jobs))), list(range(len(jobs), 0, -1))):
        levels = ranking.levels(jobs, done, 10.0)
        quick, slow = ranking.as_array(jobs, levels), as_array(jobs, levels)
        assert quick[0].tolist() == slow[0].tolist()
        assert quick[1] == slow[1]


def test_levels_of_other_jobs_become_an_array_too():
    # They were computed before job2 came, and take effect after.
    ranking = Ranking(POLICIES["leveller"], PolicySection(levels=4))
    before, after = [job(1, (0,))], [job(1, (0,)), job(2, (0,))]
    levels = ranking.levels(before, [1], 10.0)
    ranking.levels(after, [1, 0], 11.0)
    assert ranking.as_array(after, levels)[0].tolist() == [3, 0]


def test_what_a_job_has_done_is_remembered_when_others_come():
    told = []

    def spy(jobs, groups, count, scope):
        told.append([one.rate for one in jobs])
        return {}

    first, other = job(1, (0,)), job(2, (0,))
    settings = PolicySection(half_life_s=10)
    kept, alone = Ranking(spy, settings), Ranking(spy, settings)
    kept.levels([first], [4], 10.0)
    kept.levels([first, other], [4, 0], 20.0)
    running = [first]
    alone.levels(running, [4], 10.0)
    alone.levels(running, [4], 20.0)
    assert told[1] == [told[3][0], 0.0]
    assert 0 < told[1][0] < 4 * first.ideal_s / 20  # it has been standing still of late
