"""Three tenants' real PyTorch jobs on a leaf-spine fabric: the worst-off has most under LEVELLER."""

import importlib.util

import pytest
from rich.console import Console

from topo import demo, scenario

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="PyTorch is not installed: run 'make ddp'"
    ),
    pytest.mark.timeout(900),
]


def test_the_worst_off_of_real_training_jobs_has_most_under_leveller():
    policies = ["fair", "crux", "leveller"]
    plan = demo.Plan("ddp", scenario.find("ddp"), policies, "softswitch", "fabric", 40.0, 45.0)
    outcomes = demo.run(plan, Console(quiet=True))
    for outcome in outcomes:
        print(outcome)  # noqa: T201 (seen with pytest -rP)
    fair, crux, leveller = (outcome.minimum for outcome in outcomes)
    assert all(job.iterations >= 4 for outcome in outcomes[::2] for job in outcome.jobs)
    assert leveller >= 0.54  # theory: 0.6. Pure ACKs that overtake data cost a time-out of 3 s now and then
    assert leveller > fair
    assert leveller > crux
