import pytest

from controlplane.model import Link
from topo import scenario, theory

PAIR = scenario.find("pair")
FABRIC = PAIR.fabric.build()
PATHS = {
    "job1": [(Link("s1", 1), Link("s2", 2)), (Link("s2", 1), Link("s1", 2))],
    "job2": [(Link("s1", 1), Link("s2", 3)), (Link("s2", 1), Link("s1", 3))],
}


@pytest.mark.parametrize(
    ("policy", "first", "second"), [("fair", 0.75, 0.75), ("static", 1, 0.75), ("leveller", 6 / 7, 6 / 7)]
)
@pytest.mark.parametrize("scope", ["fabric", "port"])
def test_pair_on_the_real_fabric_is_the_worked_example(policy, first, second, scope):
    rates = theory.long_run(PAIR, FABRIC, policy, scope, PATHS)
    assert rates == {"job1": pytest.approx(first), "job2": pytest.approx(second)}


def status(**changes):
    flows = [
        {"job": job, "group": number, "path": [str(link) for link in path]}
        for number, (job, path) in enumerate((job, path) for job in PATHS for path in PATHS[job])
    ]
    flows.append({"job": "job1", "group": None, "path": ["s2:1", "s1:2"]})  # acknowledgements only
    flows[0] |= changes
    return {"flows": flows}


def test_paths_come_from_the_controllers_status():
    assert theory.flow_paths(status(), PAIR) == PATHS


def test_no_theory_while_a_path_is_unknown():
    assert theory.flow_paths(status(path=None), PAIR) is None
