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
