from pathlib import Path

import pytest

from leveller.errors import UserError
from simulator.compare import compare_policies
from simulator.plots import draw
from simulator.scenario import Scenario

pytest.importorskip("matplotlib", reason="matplotlib is not installed: no pictures")


@pytest.fixture
def comparison():
    config = Scenario.model_validate(
        {
            "horizon_s": 40,
            "fabric": {"kind": "link"},
            "jobs": [{"id": name, "compute_s": 1, "comm_s": 1} for name in "abc"],
        }
    )
    fabric = config.fabric.build(Path())
    return compare_policies(config, fabric, ["fair", "static"], [0, 1], lambda label: lambda now: None)


def test_a_png_and_an_svg(tmp_path, comparison):
    png, svg = draw(comparison, tmp_path / "run.1")
    assert (png.name, svg.name) == ("run.1.png", "run.1.svg")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in svg.read_text()


def test_a_folder_that_is_not_there(tmp_path, comparison):
    with pytest.raises(UserError, match=r"x.png cannot be written .*: give --plot another name"):
        draw(comparison, tmp_path / "none" / "x")
