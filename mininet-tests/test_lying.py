"""A job that lies about its progress, and honest ones, held against what the switches counted."""

import time

import pytest

from topo import measure, scenario

PAIR = scenario.find("pair")


@pytest.fixture
def run(start_lab):
    """``run(policy, jobs)``: a lab with the jobs of scenario ``pair``, ready and begun."""
    return lambda policy, jobs: start_lab(PAIR.model_copy(update={"jobs": jobs}), policy)


def jobs(lab):
    return {job["id"]: job for job in lab.status()["jobs"]}


@pytest.mark.parametrize("honest", [0, 12], ids=["from the start", "once it has been measured"])
def test_who_hides_every_second_iteration_is_flagged_and_does_not_win(run, honest):
    first, second = PAIR.jobs
    lab = run("leveller", [first, second.model_copy(update={"honest": honest})])
    lab.wait_for(lambda: jobs(lab).get("job2", {}).get("flagged"), 120, "job2 to be flagged")
    assert jobs(lab)["job1"]["flagged"] is None
    lab.wait_for(
        lambda: jobs(lab)["job2"]["flagged"] and jobs(lab)["job2"]["state"] == "ranked",
        120,
        "job2 to have been profiled again for it, and to be flagged still",
    )
    time.sleep(10)  # the one that was pushed aside catches up
    begin = time.time()
    told = jobs(lab)["job2"]["iterations"]
    time.sleep(30)
    end, seen = time.time(), jobs(lab)
    honest_ends = measure.iteration_ends(lab.jobs[0].log, first.log, lab.jobs[0].start)
    honest_rate = measure.progress(honest_ends, PAIR.ideal_s(first), begin, end).rate
    liars_rate = 2 * (seen["job2"]["iterations"] - told) * PAIR.ideal_s(second) / (end - begin)
    print(honest_rate, liars_rate, seen)  # noqa: T201 (seen with pytest -rP)
    assert seen["job2"]["flagged"].startswith("it told of ")
    assert "its report is not used" in seen["job2"]["reason"]
    assert seen["job1"]["flagged"] is None
    # Without the check 0.61 and 0.99 were measured; with it 0.81 to 1.00 (it catches up) and 0.69 to 0.79.
    assert honest_rate >= 0.75
    assert liars_rate <= 0.9


@pytest.mark.parametrize("policy", ["fair", "static", "leveller"])
def test_the_honest_are_not_flagged(run, policy):
    lab = run(policy, PAIR.jobs)
    lab.wait_for(
        lambda: len(seen := jobs(lab)) == 2 and all(job["checked"] for job in seen.values()),
        60,
        "both jobs to be checked",
    )
    end = time.time() + 45
    while time.time() < end:
        assert [(job["flagged"], job["untold"]) for job in jobs(lab).values()] == [(None, 0)] * 2
        time.sleep(1)
    print(jobs(lab))  # noqa: T201 (seen with pytest -rP)
