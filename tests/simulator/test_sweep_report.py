import csv

import pytest

from leveller.errors import UserError
from simulator.grid import Point
from simulator.store import Row
from simulator.sweep_report import draw, estimates, print_table, summary, write_csv


def rows(values, recovered=False):
    return [
        Row(
            Point(policy, {"policy.levels": levels, "policy.scope": scope}, seed),
            {
                "min_R": 0.1 * levels + 0.02 * seed,
                "avg_R": 0.9,
                "jain": 1.0,
                "gpu_utilization": 0.5,
                "events": 7,
                **({"settled_R": 0.3, "recovery_s": 10.0 * levels + seed} if recovered else {}),
            },
        )
        for levels in values
        for scope in ("fabric", "port")
        for policy in ("fair", "leveller")
        for seed in range(3)
    ]


def test_means_over_seeds():
    found = estimates(rows([2, 3]), "min_R")
    assert len(found) == 8
    one = found["fair", (("policy.levels", 3), ("policy.scope", "port"))]
    assert one.mean == pytest.approx(0.32)
    assert one.half_width == pytest.approx(1.96 * 0.02 / 3**0.5, rel=1e-3)
    first = summary(rows([2, 3]))[0]
    assert (first["policy"], first["settings"]["policy.levels"], first["avg_R"]) == ("fair", 2, 0.9)
    assert first["ci95"]["min_R"] == pytest.approx(one.half_width)


def test_a_table(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    print_table(rows([2]))
    text = capsys.readouterr().out
    assert "0.220 ± 0.023" in text
    assert "levels" in text


def test_recovery_where_all_runs_have_it(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "140")
    print_table(rows([2], recovered=True))
    assert "21.000 ± 1.132" in capsys.readouterr().out
    print_table(rows([2], recovered=True) + rows([3]))
    assert "recovery" not in capsys.readouterr().out
    assert summary(rows([2], recovered=True))[0]["recovery_s"] == 21
    write_csv(tmp_path / "x.csv", rows([2, 3], recovered=True))
    with (tmp_path / "x.csv").open() as file:
        assert [row["recovery_s"] for row in csv.DictReader(file)][:3] == ["20.0", "21.0", "22.0"]


def test_a_csv_file(tmp_path):
    write_csv(tmp_path / "x.csv", rows([2, 3]))
    with (tmp_path / "x.csv").open() as file:
        read = list(csv.DictReader(file))
    assert len(read) == 24
    assert read[1]["policy.scope"] == "fabric"
    assert float(read[1]["min_R"]) == pytest.approx(0.22)
    with pytest.raises(UserError, match="give --csv another file"):
        write_csv(tmp_path, rows([2]))


def test_pictures(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: no pictures")
    png, svg = draw(rows([2, 64]), tmp_path / "x")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in svg.read_text()
    with pytest.raises(UserError, match="give --plot another name"):
        draw(rows([2]), tmp_path / "none" / "x")
    alone = [row for row in rows([2]) if row.point.settings["policy.scope"] == "port"]
    with pytest.raises(UserError, match="nothing to plot against"):
        draw(alone, tmp_path / "x")


def test_a_panel_per_key_of_three_values(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: no pictures")
    width = {}
    for values in ([2, 64], [2, 3, 64]):  # two keys of two values each; one of three and one of two
        png, _ = draw(rows(values), tmp_path / "x")
        width[len(values)] = int.from_bytes(png.read_bytes()[16:20])
    assert width[2] == 2 * width[3]


def test_a_panel_for_the_recovery_time(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: no pictures")
    height = {}
    for recovered in (False, True):
        png, _ = draw(rows([2, 3, 64], recovered), tmp_path / "x")
        height[recovered] = int.from_bytes(png.read_bytes()[20:24])
    assert height[True] == 2 * height[False]
