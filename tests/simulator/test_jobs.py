from fractions import Fraction

import pytest

from controlplane.policies.hermod import Key, Kind
from simulator.fabric import Sizes, clos, parallel
from simulator.jobs import ENDLESS, arrivals, plan
from simulator.run import simulate
from simulator.scenario import Scenario, read
from simulator.traffic import ecmp

FABRIC = clos([[["h1", "h2"], ["h3", "h4"]]], Sizes(2, 0, 4, 2, 8, 8, 8), agg_name="spine")
ON_HOSTS = {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "gpus_per_host": 4}


def plans(jobs, fabric=FABRIC, kind=None, taken=None):
    config = Scenario.model_validate({"horizon_s": 1, "fabric": kind or ON_HOSTS, "jobs": jobs})
    return [
        plan(arrival, fabric, taken or {}, ecmp(fabric, [0, arrival.number]))
        for arrival in arrivals(config, fabric, 0)
    ]


def test_a_simple_job_computes_then_communicates():
    (found,) = plans([{"id": "a", "compute_s": 2, "bytes": 100, "hosts": ["h1", "h3"], "iterations": 5}])
    compute, communicate = found.phases
    assert (compute.duration, compute.flows) == (2, ())
    # Two hosts send 2 (2 - 1) / 2 x 100 bytes each, half of it over each of two NICs.
    assert communicate.after == (0,)
    assert [(row.volume, row.width) for row in communicate.flows] == [(50, 1)] * 4
    assert (found.target, found.gpus) == (5, 8)


def test_seconds_of_communication_are_at_the_nics_rate():
    (found,) = plans([{"id": "a", "compute_s": 1, "comm_s": 3, "hosts": ["h1", "h2"]}])
    assert {row.volume for row in found.phases[1].flows} == {3e9}
    assert found.ideal_s(FABRIC.capacity) == pytest.approx(4)
    assert found.target == ENDLESS


def test_a_placed_job_inside_one_host_sends_nothing():
    (found,) = plans([{"id": "a", "compute_s": 1, "bytes": 1, "gpus": 3}], taken={"h2": 3})
    assert [phase.flows for phase in found.phases] == [()]
    assert found.gpus == 3


def test_overlap_and_slack():
    job = {"id": "a", "compute_s": 3, "overlap_s": 1, "comm_s": 1, "slack_s": 0.5, "hosts": ["h1", "h3"]}
    (found,) = plans([job])
    assert [(phase.after, phase.duration, bool(phase.flows), phase.slack) for phase in found.phases] == [
        ((), 2, False, 0),
        ((0,), 1, False, 0),
        ((0,), 0, True, 0.5),
    ]


def test_phases_follow_each_other_unless_told():
    job = {
        "id": "a",
        "phases": [
            {"name": "forward", "compute_s": 1},
            {"name": "backward", "compute_s": 2},
            {"name": "experts", "bytes": 10, "collective": "all-to-all", "after": ["forward"]},
            {"bytes": 20, "after": ["backward", "experts"]},
        ],
        "hosts": ["h1", "h2", "h3"],
    }
    (found,) = plans([job])
    assert [phase.after for phase in found.phases] == [(), (0,), (0,), (1, 2)]
    assert len(found.phases[2].flows) == 3 * 2 * 2
    assert len(found.phases[3].flows) == 3 * 2


def test_given_paths_on_plain_links():
    link = {"kind": "link", "links": 2, "rate_gbps": 8}
    jobs = [
        {"id": "a", "compute_s": 1, "comm_s": 1, "gpus": 4},
        {"id": "b", "compute_s": 1, "bytes": 9, "paths": [["S1:1", "S1:2"], ["S1:2"]]},
    ]
    first, second = plans(jobs, parallel(2, 8), link)
    assert [(row.path, row.volume) for row in first.phases[1].flows] == [((0,), 1e9)]
    assert [(row.path, row.volume) for row in second.phases[1].flows] == [((0, 1), 9), ((1,), 9)]
    assert (first.gpus, second.gpus) == (4, 1)


def test_arrivals_are_by_time():
    jobs = [
        {"id": name, "compute_s": 1, "comm_s": 1, "gpus": 4, "start_s": start}
        for name, start in (("late", 5), ("early", 1))
    ]
    config = Scenario.model_validate({"horizon_s": 9, "fabric": ON_HOSTS, "jobs": jobs})
    assert [(one.section.id, one.number) for one in arrivals(config, FABRIC, 0)] == [
        ("early", 1),
        ("late", 0),
    ]


def test_a_workload_asks_for_its_load():
    drawn = {"jobs": 2000, "load": 0.5, "gpus": [4, 8], "compute_s": [1, 2], "bytes": [1e9, 2e9]}
    config = Scenario.model_validate({"horizon_s": 1, "fabric": ON_HOSTS, "workload": drawn})
    found = arrivals(config, FABRIC, 3)
    busy = sum(one.gpus * one.section.iterations * one.section.compute_s for one in found)
    assert 0.3 < busy / (found[-1].start * FABRIC.gpus) < 0.5  # the rest of the load is communication
    assert [one.start for one in found] == [one.start for one in arrivals(config, FABRIC, 3)]


def test_coflows_get_their_keys():
    job = {
        "id": "a",
        "phases": [
            {"bytes": 10, "collective": "all-to-all", "layer": 3},
            {"bytes": 10, "collective": "pipeline", "micro_batch": 2},
            {"bytes": 10},
            {"bytes": 10, "kind": "TP", "layer": 1},
            {"compute_s": 1},
        ],
        "hosts": ["h1", "h3"],
    }
    (found,) = plans([job])
    assert [phase.key for phase in found.phases[:4]] == [
        Key(0, Kind.EP, 3),
        Key(2, Kind.PP, 0),
        Key(0, Kind.DP, 0),
        Key(0, Kind.TP, 1),
    ]


def test_phases_overlap_and_paths_as_counted_by_hand(tmp_path):
    """Job a takes 3.5 s alone, the last 2 on half of link 3. Job o sends 1 s over that, after 0.5 s."""
    path = tmp_path / "x.toml"
    path.write_text("""
horizon_s = 60
[fabric]
kind = "link"
links = 3
[[jobs]]
id = "a"
phases = [
  { name = "f", compute_s = 0.5 },
  { comm_s = 0.5, paths = [["S1:1"]] },
  { name = "b", compute_s = 1, after = ["f"] },
  { comm_s = 1, paths = [["S1:2"], ["S1:2", "S1:3"]] },
]
[[jobs]]
id = "o"
compute_s = 1
comm_s = 1
overlap_s = 0.5
paths = [["S1:3"]]
""")
    now, ends = Fraction(0), 0
    while now <= 60:
        now, left = now + Fraction(1, 2), Fraction(1)
        while left:
            at = now % Fraction(7, 2)
            rate, until = (Fraction(1, 2), Fraction(7, 2)) if at >= 1.5 else (Fraction(1), Fraction(3, 2))
            step = min(left / rate, until - at)
            now, left = now + step, left - step * rate
        ends += now <= 60
    result = simulate(*read(path), "fair")
    assert [(job.id, job.iterations) for job in result.jobs] == [("a", 17), ("o", ends)]
    assert [job.rate for job in result.jobs] == pytest.approx([17 * 3.5 / 60, ends * 1.5 / 60], abs=1e-9)
