from pathlib import Path

import pytest

from simulator.compare import compare_policies
from simulator.scenario import Scenario

SCENARIO = Scenario.model_validate(
    {
        "horizon_s": 400,
        "fabric": {"kind": "link"},
        "policy": {"tau_s": 0},
        "jobs": [
            {"id": "job1", "compute_s": 1, "comm_s": 1, "jitter": 0.9},
            {"id": "job2", "compute_s": 1, "comm_s": 2, "jitter": 0.9},
        ],
    }
)


def test_policies_side_by_side():
    labels = []

    def bar(label):
        labels.append(label)
        return lambda now: None

    fabric = SCENARIO.fabric.build(Path())
    fair, leveller = compare_policies(SCENARIO, fabric, ["fair", "leveller"], range(3, 6), bar)
    assert labels[:3] == ["fair 3", "fair 4", "fair 5"]
    values = [run.min_rate for run in fair.runs]
    estimate = fair.estimate("min_R")
    assert estimate.mean == pytest.approx(sum(values) / 3)
    assert 0 < estimate.half_width < 0.05
    assert leveller.estimate("min_R").mean > estimate.mean
    json = leveller.as_json()
    assert [run["seed"] for run in json["runs"]] == [3, 4, 5]
    assert json["min_R"] == leveller.estimate("min_R").mean


def test_one_seed_has_no_interval():
    fabric = SCENARIO.fabric.build(Path())
    (fair,) = compare_policies(SCENARIO, fabric, ["fair"], [0], lambda label: lambda now: None)
    assert fair.estimate("jain").half_width == 0
