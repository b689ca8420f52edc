from pathlib import Path

import pytest

from leveller.errors import UserError
from simulator.jobs import arrivals
from simulator.replay import sections
from simulator.run import simulate
from simulator.scenario import JobSection, Scenario, read
from simulator.traces.sections import AcmeTrace, LingjunLike

DATA = Path(__file__).parents[1] / "data"
FABRIC = {"kind": "lingjun", "topo": str(DATA / "lingjun_topo.csv"), "aggs_per_pod": 2, "cores_per_agg": 1}
LEAVES = {"kind": "leaf-spine", "leaves": 4, "spines": 2, "hosts_per_leaf": 8}
LINGJUN = {
    "kind": "lingjun",
    "jobs": str(DATA / "lingjun_job.csv"),
    "workers": str(DATA / "lingjun_worker.csv"),
}


def scenario(workload, fabric=FABRIC, horizon=1000):
    return Scenario.model_validate({"horizon_s": horizon, "fabric": fabric, "workload": workload})


def jobs(workload, fabric=FABRIC, horizon=1000, seed=0):
    config = scenario(workload, fabric, horizon)
    return sections(config.workload, config.fabric.build(Path()), seed, horizon)


def test_times_go_as_fast_as_asked():
    a, b = jobs({**LINGJUN, "speedup": 60, "profiles": ["vgg16"]})
    assert (a.start_s, b.start_s) == (0, 4)
    # 3600 s / 60, of iterations that compute 0.141 s and send 2 (2 - 1) / 2 x 528 MiB at 100 Gbit/s.
    assert a.iterations == round(60 / (0.141 + 528 * 2**20 / 12.5e9))


def test_a_window_shows_what_remains_of_a_job():
    a, b = jobs({**LINGJUN, "speedup": 10, "window_s": [600, 1200]}, horizon=100)
    assert (a.id, a.start_s, a.iterations) == ("made-a", 0, None)  # until the horizon
    assert b.start_s == 0
    (short,) = jobs({**LINGJUN, "window_s": [3000, 1e6], "min_gpus": 1, "speedup": 2})[:1]
    assert short.id == "made-a"


def test_on_the_very_hosts():
    (a,) = jobs({**LINGJUN, "placed": True, "speedup": 60, "min_gpus": 9})
    assert (a.hosts, a.gpus) == (["hostA", "hostC"], 16)
    config = scenario({**LINGJUN, "placed": True, "speedup": 60, "profiles": ["vgg16"]})
    result = simulate(config, config.fabric.build(Path()), "fair")
    assert [job.id for job in result.jobs] == ["made-a"]
    assert result.min_rate == pytest.approx(1)


def test_more_iterations_than_a_job_may_have():
    slow = AcmeTrace(kind="acme", jobs=DATA / "acme_kalos.csv", speedup=0.001, profiles=["vgg16"], min_gpus=9)
    fabric = scenario(LINGJUN, LEAVES).fabric.build(Path())
    with pytest.raises(
        UserError, match=r"job made-1 would do .* iterations of vgg16: raise workload.speedup"
    ):
        sections(slow, fabric, 0, 1e9)


def test_the_peak_runs_from_the_beginning_to_the_end():
    found = jobs({"kind": "lingjun-peak"}, {**LEAVES, "leaves": 20})
    assert len(found) == 39
    assert {(job.start_s, job.iterations) for job in found} == {(0, None)}
    assert len({job.profile for job in found}) > 3


def test_lingjun_like_jobs_ask_for_the_load():
    workload = {"kind": "lingjun-like", "jobs": 400, "load": 0.5, "speedup": 600, "profiles": ["vgg16"]}
    fabric = {**LEAVES, "leaves": 12}
    found = jobs(workload, fabric, 1e9)
    assert len(found) == 400
    built = scenario(workload, fabric).fabric.build(Path())
    busy = sum(job.gpus * job.iterations * job.alone_s(built) for job in found)
    assert busy / found[-1].start_s / built.gpus == pytest.approx(0.5, rel=0.2)
    assert max(job.gpus for job in found) <= built.gpus


def test_the_same_seed_gives_the_same_jobs():
    workload = LingjunLike(kind="lingjun-like", jobs=30, speedup=600)
    fabric = scenario(LINGJUN, LEAVES).fabric.build(Path())
    assert sections(workload, fabric, 1, 1e6) == sections(workload, fabric, 1, 1e6)
    assert sections(workload, fabric, 1, 1e6) != sections(workload, fabric, 2, 1e6)


def test_alone_is_the_nics_time():
    fabric = scenario(LINGJUN, LEAVES).fabric.build(Path())
    ring = JobSection(id="a", compute_s=1, bytes=12.5e9, gpus=32)
    assert ring.alone_s(fabric) == pytest.approx(1 + 2 * 3 / 4)
    spread = JobSection(id="a", compute_s=1, comm_s=2, collective="all-to-all", gpus=32)
    assert spread.alone_s(fabric) == pytest.approx(3)
    assert JobSection(id="a", compute_s=1, bytes=1, gpus=8).alone_s(fabric) == 1


def test_a_scenario_file_tells_what_it_left_out(tmp_path, caplog):
    for name in ("lingjun_job.csv", "lingjun_worker.csv", "lingjun_topo.csv"):
        (tmp_path / name).write_bytes((DATA / name).read_bytes())
    path = tmp_path / "x.toml"
    path.write_text(
        'horizon_s = 100\n[fabric]\nkind = "lingjun"\ntopo = "lingjun_topo.csv"\n'
        '[workload]\nkind = "lingjun"\nspeedup = 60\n'
        'jobs = "lingjun_job.csv"\nworkers = "lingjun_worker.csv"\n'
    )
    config, fabric = read(path)
    assert [arrival.section.id for arrival in arrivals(config, fabric, 0)] == ["made-a", "made-b"]
    assert "3 of 14 rows used; skipped: 1 running before submitted (first: line 4)" in caplog.text
    path.write_text(path.read_text().replace('"lingjun"\nspeedup', '"linjun"\nspeedup'))
    with pytest.raises(UserError, match="kind = 'linjun': choose one of drawn, lingjun, acme, lingjun-peak"):
        read(path)


def test_a_window_without_jobs():
    with pytest.raises(UserError, match=r"none of the trace's jobs runs within .*: move workload.window_s"):
        jobs({**LINGJUN, "window_s": [1e8, 2e8]})


def test_a_horizon_that_holds_too_many_iterations():
    peak = {"kind": "lingjun-peak", "profiles": ["vgg16"]}
    with pytest.raises(
        UserError, match=r"would do .* iterations of vgg16: shorten horizon_s: keep to 10000000"
    ):
        jobs(peak, {**LEAVES, "leaves": 100}, horizon=1e9)
