import json

import pytest

from simulator.grid import variants
from simulator.run import simulate


def test_each_row_is_what_a_run_alone_gives(path, run_sweep):
    rows = run_sweep()
    assert [(row.point.policy, row.point.settings["policy.tau_s"], row.point.seed) for row in rows[:5]] == [
        ("fair", 0.5, 0),
        ("fair", 0.5, 1),
        ("leveller", 0.5, 0),
        ("leveller", 0.5, 1),
        ("fair", 8, 0),
    ]
    scenario, fabric = variants(path, {"policy.tau_s": [8]})["policy.tau_s=8"]
    alone = simulate(scenario, fabric, "leveller", 1).as_json()
    assert rows[7].figures == {key: value for key, value in alone.items() if key not in ("wall_s", "policy")}
    assert rows[2].figures != rows[3].figures


def test_a_sweep_that_was_killed_goes_on(run_sweep, tmp_path):
    out = tmp_path / "out.jsonl"

    class Killed(BaseException):
        pass

    def kill(row, left=[3]):  # noqa: B006
        left[0] -= 1
        if not left[0]:
            raise Killed

    whole = run_sweep()
    with pytest.raises(Killed):
        run_sweep(out, seen=kill)
    assert len(out.read_text().splitlines()) == 1 + 3
    out.write_bytes(out.read_bytes()[:-40])  # and the last line had not been written to its end
    kept = out.read_text().splitlines()[1:3]
    marked = [{**json.loads(line), "events": -1} for line in kept]  # so that it shows whether they run again
    header = out.read_text().splitlines()[0]
    out.write_text("\n".join([header, *map(json.dumps, marked)]) + '\n{"policy": "fa')
    rows = run_sweep(out)
    assert [row.figures["events"] for row in rows[:2]] == [-1, -1]
    assert rows[2:] == whole[2:]
    assert len(out.read_text().splitlines()) == 1 + 8


def test_rows_of_another_grid_stay(run_sweep, tmp_path):
    out = tmp_path / "out.jsonl"
    run_sweep(out, ["fair"])
    run_sweep(out, ["static"])
    again = []
    assert len(run_sweep(out, ["fair", "static"], seen=again.append)) == len(again) == 8
    policies = [json.loads(line)["policy"] for line in out.read_text().splitlines()[1:]]
    assert policies == ["fair", "fair", "static", "static"] * 2
