import json
import subprocess
import sys
import time

import psutil
import pytest

from leveller.errors import UserError
from simulator.grid import points, variants
from simulator.run import simulate
from simulator.sweep import Store, digest, sweep

TEXT = """
horizon_s = 40
[fabric]
kind = "link"
[policy]
levels = 2
[[jobs]]
id = "job1"
compute_s = 1
comm_s = 1
jitter = 0.5
[[jobs]]
id = "job2"
compute_s = 1
comm_s = 2
jitter = 0.5
"""
OPTIONS = {"policy.tau_s": [0.5, 8]}


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "x.toml"
    found.write_text(TEXT)
    return found


def run(path, out=None, policies=("fair", "leveller"), workers=1, seen=lambda row: None):
    found = variants(path, OPTIONS)
    scenario = next(iter(found.values()))[0]
    store = Store(out, digest(path, scenario)) if out else None
    return sweep(points(policies, OPTIONS, range(2)), found, workers, store, seen)


def test_each_row_is_what_a_run_alone_gives(path):
    rows = run(path)
    assert [(row.point.policy, row.point.settings["policy.tau_s"], row.point.seed) for row in rows[:5]] == [
        ("fair", 0.5, 0),
        ("fair", 0.5, 1),
        ("leveller", 0.5, 0),
        ("leveller", 0.5, 1),
        ("fair", 8, 0),
    ]
    scenario, fabric = variants(path, OPTIONS)["policy.tau_s=8"]
    alone = simulate(scenario, fabric, "leveller", 1).as_json()
    assert rows[7].figures == {key: value for key, value in alone.items() if key not in ("wall_s", "policy")}
    assert rows[2].figures != rows[3].figures


def test_the_number_of_workers_does_not_matter(path, tmp_path):
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    assert run(path, one) == run(path, two, workers=2)
    assert one.read_bytes() == two.read_bytes()


def test_a_sweep_that_was_killed_goes_on(path, tmp_path):
    out = tmp_path / "out.jsonl"

    class Killed(BaseException):
        pass

    def kill(row, left=[3]):  # noqa: B006
        left[0] -= 1
        if not left[0]:
            raise Killed

    whole = run(path)
    with pytest.raises(Killed):
        run(path, out, seen=kill)
    assert len(out.read_text().splitlines()) == 1 + 3
    out.write_bytes(out.read_bytes()[:-40])  # and the last line had not been written to its end
    kept = out.read_text().splitlines()[1:3]
    marked = [{**json.loads(line), "events": -1} for line in kept]  # so that it shows whether they run again
    header = out.read_text().splitlines()[0]
    out.write_text("\n".join([header, *map(json.dumps, marked)]) + '\n{"policy": "fa')
    rows = run(path, out)
    assert [row.figures["events"] for row in rows[:2]] == [-1, -1]
    assert rows[2:] == whole[2:]
    assert len(out.read_text().splitlines()) == 1 + 8


def test_rows_of_another_grid_stay(path, tmp_path):
    out = tmp_path / "out.jsonl"
    run(path, out, ["fair"])
    run(path, out, ["static"])
    again = []
    assert len(run(path, out, ["fair", "static"], seen=again.append)) == len(again) == 8
    policies = [json.loads(line)["policy"] for line in out.read_text().splitlines()[1:]]
    assert policies == ["fair", "fair", "static", "static"] * 2


def test_a_file_of_another_scenario(path, tmp_path):
    out = tmp_path / "out.jsonl"
    run(path, out)
    path.write_text(TEXT.replace("comm_s = 2", "comm_s = 3"))
    with pytest.raises(UserError, match=r"out.jsonl is not a sweep of this scenario .* give --out another"):
        run(path, out)
    (tmp_path / "text").write_text("my notes\n")
    with pytest.raises(UserError, match="is not a sweep of this scenario"):
        run(path, tmp_path / "text")
    assert (tmp_path / "text").read_text() == "my notes\n"


def test_a_file_in_use(path, tmp_path):
    out = tmp_path / "out.jsonl"
    store = Store(out, "x")
    with pytest.raises(UserError, match="is in use by another sweep"):
        run(path, out)
    store.close([])
    with pytest.raises(UserError, match="cannot be written"):
        Store(tmp_path, "x")


def test_workers_of_a_sweep_that_was_killed_end(path, tmp_path):
    out = tmp_path / "out.jsonl"
    command = [
        sys.executable,
        "-m",
        "leveller",
        "sim",
        "sweep",
        str(path),
        "--workers",
        "2",
        "--seeds",
        "500",
    ]
    process = subprocess.Popen([*command, "--policy", "fair,leveller", "--out", str(out)])
    parent = psutil.Process(process.pid)
    deadline = time.monotonic() + 60
    while not (out.exists() and out.read_text().count("\n") > 1):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    workers = parent.children(recursive=True)
    assert len(workers) >= 2
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert alive == []
