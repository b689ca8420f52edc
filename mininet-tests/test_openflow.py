"""An Open vSwitch leaf beside P4 spines and leaves: levels, paths and progress as on any other leaf."""

import shutil
import subprocess
import time

import pytest

from topo import scenario
from topo.files import Policy
from topo.lab import Lab

pytestmark = pytest.mark.skipif(
    shutil.which("ovs-vswitchd") is None,
    reason="Open vSwitch is not installed: apt-get install openvswitch-switch",
)
JOBS = scenario.Scenario.model_validate(
    {
        "unit_s": 0.5,
        "fabric": {
            "kind": "leaf-spine",
            "leaves": 2,
            "spines": 2,
            "hosts_per_leaf": 3,
            "rate_mbps": 40,
            "host_rate_mbps": 400,
        },
        "jobs": [
            {"id": "job1", "compute": 1, "communicate": 2, "hosts": ["h1", "h4"]},
            {"id": "job2", "compute": 1, "communicate": 2, "hosts": ["h2", "h5"], "log": "nanogpt"},
            {"id": "job3", "compute": 1, "communicate": 1, "hosts": ["h3", "h6"]},
        ],
    }
)


@pytest.fixture
def lab(directory):
    with Lab(JOBS.fabric.build(), directory=directory, open_vswitches=["leaf1"]) as lab:
        lab.start_controller(Policy("leveller", profile=False))
        lab.start_agents()
        lab.wait_ready()
        yield lab


def test_paths_through_it_are_learnt_and_its_levels_follow_the_ranking(lab):
    lab.start_jobs(JOBS)
    lab.wait_for(lambda: len(lab.status()["groups"]) == 6, 30, "six groups")
    paths = {tuple(group["path"]) for group in lab.status()["groups"]}
    assert {len(path) for path in paths} == {3}
    leaves = {(path[0].split(":")[0], path[2].split(":")[0]) for path in paths}
    assert leaves == {("leaf1", "leaf2"), ("leaf2", "leaf1")}
    assert leaf(lab)["primary"]
    lab.wait_for(lambda: leaf(lab)["entries"]["flow_group_v4"] == 6, 10, "six flows' entries")
    assert leaf(lab)["refused"] == {}
    banks = set()
    for _ in range(40):
        banks.add(leaf(lab)["active_bank"])
        time.sleep(0.25)
    assert banks == {0, 1}, "no re-ranking has reached it"
    assert all(job["R"] > 0.3 for job in lab.status()["jobs"])
    lab.check()


def test_it_forwards_when_the_controller_is_gone_and_is_reconciled_when_it_comes_back(lab):
    lab.start_jobs(JOBS)
    lab.wait_for(lambda: len(lab.status()["groups"]) == 6, 30, "six groups")
    lab.kill_controller()
    time.sleep(1)
    before = [job.log.read_text().count("iter") for job in lab.jobs]
    time.sleep(6)
    after = [job.log.read_text().count("iter") for job in lab.jobs]
    # The ranking stands still, and strict priority may starve who is last in it; who is first goes on.
    assert any(now >= then + 2 for then, now in zip(before, after, strict=True))
    lab.start_controller(Policy("leveller", profile=False))
    lab.wait_ready()
    lab.wait_for(lambda: len(lab.status()["groups"]) == 6, 30, "six groups again")
    found = leaf(lab)
    assert (found["primary"], found["refused"], found["error"]) == (True, {}, None)


def test_what_somebody_else_deletes_is_written_again(lab):
    lab.wait_for(lambda: leaf(lab)["entries"].get("level_queue"), 10, "its first rows")
    bridge = lab.switches["leaf1"].log_path.with_suffix(".ovs") / "leaf1-br.mgmt"

    def ofctl(command):
        done = subprocess.run(
            ["ovs-ofctl", "-O", "OpenFlow13", command, f"unix:{bridge}"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        # Without counters and ages; those of the tables that the controller owns.
        return sorted(
            line[line.index("priority=") :] for line in done.stdout.splitlines() if "table=" in line
        )

    lab.wait_for(lambda: len(ofctl("dump-flows")) > 15, 10, "its entries")
    before = ofctl("dump-flows")
    ofctl("del-flows")
    assert ofctl("dump-flows") == []
    lab.wait_for(lambda: ofctl("dump-flows") == before, 15, "the same entries again")


def leaf(lab):
    """Return what the controller says of the switch."""
    (found,) = (switch for switch in lab.status()["switches"] if switch["name"] == "leaf1")
    return found
