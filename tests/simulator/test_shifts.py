from controlplane.policies.cassini import Pattern
from simulator.fabric import parallel
from simulator.plan import Flows, Phase, Plan
from simulator.ranking import enter
from simulator.shifts import as_arrays, patterns

FABRIC = parallel(3, 8)  # 1e9 bytes a second


def job(name, *flows):
    return enter(0, Plan(name, (Phase(duration=1.0), Phase((0,), flows=flows)), 9), FABRIC, 0.0, {})


def test_the_busiest_link_is_full_and_others_less():
    found = patterns([job("a", Flows((0, 1), 1e9), Flows((1,), 1e9))], FABRIC)
    assert found == {
        FABRIC.links[0]: {"a": Pattern(3.0, ((1.0, 3.0, 0.5),))},
        FABRIC.links[1]: {"a": Pattern(3.0, ((1.0, 3.0, 1.0),))},
    }


def test_only_jobs_that_share_a_link_keep_to_times():
    jobs = [job("a", Flows((0,), 1e9)), job("b", Flows((0,), 1e9)), job("c", Flows((2,), 1e9))]
    shifts, cycles = as_arrays(jobs, FABRIC)
    assert shifts.tolist() == [0, 1, 0]
    assert cycles.tolist() == [2, 2, 0]
    assert [len(one) for one in as_arrays([], FABRIC)] == [0, 0]
