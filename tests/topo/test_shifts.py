from importlib import resources

import pytest

from controlplane.model import Link
from topo import scenario, shifts

TEXT = (
    (resources.files("topo") / "scenarios/turns.toml").read_text().replace("host_pairs = 2", "host_pairs = 3")
)
ALONE = '[[jobs]]\nid = "job3"\ncompute = 1\ncommunicate = 1\nhosts = ["h5", "h6"]\n'


def paths(job):
    return [(Link("s1", 1), Link("s2", job + 1)), (Link("s2", 1), Link("s1", job + 1))]


def read(tmp_path, text):
    path = tmp_path / "x.toml"
    path.write_text(text)
    found = scenario.find(str(path))
    return found, found.fabric.build()


def test_two_jobs_that_fit_take_turns(tmp_path):
    # Each sends for 0.5 s of 1.5 s: any shift from 0.5 s to 1 s keeps them apart.
    found = shifts.slots(*read(tmp_path, TEXT), {"job1": paths(1), "job2": paths(2)})
    assert found["job1"] == (0, pytest.approx(1.5))
    assert found["job2"][1] == pytest.approx(1.5)
    assert 0.5 <= found["job2"][0] <= 1.0


def test_a_job_that_shares_no_link_needs_no_slots(tmp_path):
    apart = {"job1": paths(1), "job2": paths(2), "job3": [(Link("s1", 4),), (Link("s2", 4),)]}
    assert sorted(shifts.slots(*read(tmp_path, TEXT + ALONE), apart)) == ["job1", "job2"]
