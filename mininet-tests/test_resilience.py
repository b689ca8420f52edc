"""A controller that dies and comes back, and a switch that does."""

import asyncio
import signal
import time

import pytest

from topo import measure, scenario
from topo.files import Policy


def iterations(lab):
    return {job.spec.id: len(measure.iteration_ends(job.log, job.spec.log, job.start)) for job in lab.jobs}


def progress(lab, seconds):
    before = iterations(lab)
    time.sleep(seconds)
    return {job: count - before[job] for job, count in iterations(lab).items()}


@pytest.fixture
def held(connected_fabric):
    """``held(lab)``: what each switch holds, read back while no controller runs."""

    async def read(lab):
        async with connected_fabric(lab) as (fabric, setups):
            return {name: fabric.held(name) for name in setups}

    return lambda lab: asyncio.run(read(lab))


def pushes(lab):
    return {switch["name"]: switch["pipeline_pushes"] for switch in lab.status()["switches"]}


def test_controller_killed_in_mid_ranking_and_restarted(start_lab, held):
    lab = start_lab(scenario.find("pair"))
    ranked = {"job1", "job2"}
    lab.wait_for(
        lambda: {job["id"] for job in lab.status()["jobs"] if job["state"] == "ranked"} == ranked,
        40,
        "both jobs to be ranked",
    )
    # A switch that stands still holds a re-ranking up between its two writes; there the controller dies.
    standing = lab.switches["s2"].process
    standing.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    lab.kill_controller()
    standing.send_signal(signal.SIGCONT)

    old = held(lab)
    for switch in old.values():
        assert len(switch.flows) == 4
        levels = {switch.groups[entry.group].level for entry in switch.flows.values()}
        assert len(levels) == 2, "the ranking in force is a whole one: each job has its level"
    without = progress(lab, 10)
    assert min(without.values()) >= 3, without
    assert held(lab) == old

    lab.start_controller(Policy("leveller"))
    lab.wait_ready()
    lab.wait_for(
        lambda: {job["id"] for job in lab.status()["jobs"] if job["state"] == "ranked"} == ranked,
        20,
        "both jobs to be ranked again",
    )
    assert pushes(lab) == {"s1": 0, "s2": 0}
    status = lab.status()
    assert all(switch["error"] is None for switch in status["switches"])
    after = progress(lab, 5)
    assert min(after.values()) >= 1, after
    lab.kill_controller()
    new = held(lab)
    for name, switch in new.items():
        assert switch.flows == old[name].flows, "group numbers and slots were taken over"


def test_killed_switch_does_not_hold_up_the_others(start_lab):
    lab = start_lab(scenario.find("leafspine"))
    time.sleep(3)
    lab.switches["leaf3"].kill()
    lab.wait_for(
        lambda: not next(s for s in lab.status()["switches"] if s["name"] == "leaf3")["connected"],
        10,
        "the controller to miss leaf3",
    )
    alone = progress(lab, 6)
    assert alone["job1"] >= 4, alone  # the one job without a rank at leaf3
    assert alone["job2"] + alone["job3"] + alone["job4"] <= 3, alone
    status = lab.status()
    assert status["controller"]["ranked_s_ago"] < 1
    others = [switch for switch in status["switches"] if switch["name"] != "leaf3"]
    assert all(switch["primary"] and switch["error"] is None for switch in others)

    lab.switches["leaf3"].start()
    lab.wait_ready()
    assert pushes(lab)["leaf3"] >= 1
    # TCP's own timer is 3 s in a lab and doubles while a switch is away.
    before = iterations(lab)
    lab.wait_for(
        lambda: all(count > before[job] for job, count in iterations(lab).items()),
        40,
        "every job to go on through the switch that came back",
    )
