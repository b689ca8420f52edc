"""Two jobs, (2, 1) each, start together on one bottleneck: CASSINI's time shifts let them take turns."""

import pytest
from rich.console import Console

from topo import demo, scenario

TEXT = """
unit_s = 0.5
[fabric]
kind = "pair"
host_pairs = 2
rate_mbps = 100
host_rate_mbps = 1000
[[jobs]]
id = "job1"
compute = 2
communicate = 1
hosts = ["h1", "h2"]
[[jobs]]
id = "job2"
compute = 2
communicate = 1
hosts = ["h3", "h4"]
log = "nanogpt"
"""


@pytest.fixture
def rates(tmp_path):
    """Both jobs' R under a policy, some seconds after the paths of their flows are known."""

    def run(policy):
        path = tmp_path / "turns.toml"
        path.write_text(TEXT)
        plan = demo.Plan("turns", scenario.find(str(path)), [policy], "softswitch", "fabric", 12.0, 20.0)
        (outcome,) = demo.run(plan, Console(quiet=True))
        print(outcome)  # noqa: T201 (seen with pytest -rP)
        return [job.rate for job in outcome.jobs]

    return run


def test_together_they_slow_each_other_down(rates):
    assert max(rates("fair")) <= 0.85  # in theory 0.75


def test_with_shifts_each_runs_as_if_alone(rates):
    assert min(rates("cassini")) >= 0.95
