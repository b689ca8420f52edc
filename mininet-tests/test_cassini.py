"""Two jobs, (2, 1) each, start together on one bottleneck: CASSINI's time shifts let them take turns."""

from rich.console import Console

from topo import demo, scenario


def rates(policy):
    """Both jobs' R under a policy, some seconds after the paths of their flows are known."""
    plan = demo.Plan("turns", scenario.find("turns"), [policy], "softswitch", "fabric", 12.0, 20.0)
    (outcome,) = demo.run(plan, Console(quiet=True))
    print(outcome)  # noqa: T201 (seen with pytest -rP)
    return [job.rate for job in outcome.jobs]


def test_together_they_slow_each_other_down():
    assert max(rates("fair")) <= 0.85  # in theory 0.75


def test_with_shifts_each_runs_as_if_alone():
    assert min(rates("cassini")) >= 0.95
