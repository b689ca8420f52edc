"""The scenario files that come with the package."""

from importlib import resources
from pathlib import Path

import pytest

from leveller.config import load
from simulator.run import simulate
from simulator.scenario import Scenario, read

FOLDER = Path(str(resources.files("simulator") / "scenarios"))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_every_file_is_right(path):
    assert load(path, Scenario).horizon_s > 0


@pytest.mark.parametrize(
    ("name", "policy", "expected"),
    [
        ("pair", "fair", [0.75, 0.75]),
        ("pair", "static", [1, 0.75]),
        ("pair", "leveller", [6 / 7, 6 / 7]),
        ("trio", "fair", [0.5, 0.5, 2 / 3]),
        ("trio", "leveller", [0.6, 0.6, 0.6]),
        ("trio", "crux", [1, 0, 1]),
    ],
)
def test_the_small_ones_give_what_they_say(name, policy, expected):
    scenario, fabric = read(FOLDER / f"{name}.toml")
    rates = [job.rate for job in simulate(scenario, fabric, policy).jobs]
    assert rates == pytest.approx(expected, abs=0.01)  # an iteration under way at the horizon does not count


def test_three_jobs_do_the_iterations_that_the_paper_reports():
    scenario, fabric = read(FOLDER / "three-jobs.toml")
    counts = [job.iterations for job in simulate(scenario, fabric, "leveller").jobs]
    assert counts == pytest.approx([14, 27, 14], abs=1)


def test_four_tenants_send_through_the_spines():
    scenario, fabric = read(FOLDER / "four-tenants.toml")
    short = scenario.model_copy(update={"horizon_s": 60})
    result = simulate(short, fabric, "leveller")
    assert len(result.jobs) == 4
    assert 0 < result.min_rate < 1
    uplinks = [link for leaf in fabric.leaf_up for link in leaf]
    assert max(result.load[link] for link in uplinks) > 0.3


@pytest.mark.parametrize("paths", ["ecmp", "crux"])
def test_four_tenants_on_equal_paths_have_no_lower_minimum_than_under_crux(paths):
    scenario, fabric = read(FOLDER / "four-tenants.toml")
    policy = scenario.policy.model_copy(update={"paths": paths})
    short = scenario.model_copy(update={"horizon_s": 120, "policy": policy})
    for seed in range(3):
        ours, theirs = (simulate(short, fabric, name, seed).min_rate for name in ("leveller", "crux"))
        assert ours >= theirs - 0.01


def test_an_arrival_is_recovered_from():
    scenario, fabric = read(FOLDER / "arrival.toml")
    short = scenario.model_copy(update={"horizon_s": 300})
    found = simulate(short, fabric, "leveller").recovery
    assert 0.5 < found.settled < 0.6
    assert 0 < found.seconds < 100
