import csv
import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from leveller.cli import app
from leveller.errors import UserError

PAIR = """
horizon_s = 36
[fabric]
kind = "link"
[policy]
tau_s = 0
[[jobs]]
id = "job1"
compute_s = 1
comm_s = 1
[[jobs]]
id = "job2"
compute_s = 1
comm_s = 2
"""


@pytest.fixture
def pair(tmp_path):
    path = tmp_path / "pair.toml"
    path.write_text(PAIR)
    return path


def invoke(*args):
    result = CliRunner().invoke(app, ["sim", *map(str, args)])
    if isinstance(result.exception, UserError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json(pair):
    found = json.loads(invoke(pair, "--policy", "leveller", "--json"))
    assert list(found) == ["policy", "jobs", "min_R", "avg_R", "jain", "gpu_utilization", "events", "wall_s"]
    assert [(job["id"], job["iterations"]) for job in found["jobs"]] == [("job1", 15), ("job2", 10)]
    assert found["min_R"] == pytest.approx(5 / 6, abs=1e-9)


def test_table_and_seed_before_the_file(pair):
    text = invoke("--policy", "fair", "--seed", "3", pair)
    assert "job1" in text
    assert "minimum R 0.7" in text


def test_compare(pair, tmp_path):
    rows = tmp_path / "rows.csv"
    text = invoke("compare", pair, "--policy", "fair,leveller", "--csv", rows)
    assert "fair" in text
    assert "leveller" in text
    with rows.open() as file:
        written = list(csv.DictReader(file))
    assert [(row["policy"], row["job"], row["iterations"]) for row in written[2:]] == [
        ("leveller", "job1", "15"),
        ("leveller", "job2", "10"),
    ]
    found = json.loads(invoke("compare", pair, "--policy", "fair", "--json"))
    assert found[0]["runs"][0]["jobs"][1]["iterations"] == 9


def test_errors(pair, tmp_path):
    with pytest.raises(UserError, match="there is no policy 'magic'"):
        invoke(pair, "--policy", "magic")
    with pytest.raises(UserError, match="--policy 'magic': choose from"):
        invoke("compare", pair, "--policy", "fair,magic")
    with pytest.raises(UserError, match="cannot be written"):
        invoke("compare", pair, "--policy", "fair", "--csv", tmp_path)


def test_a_bad_file_is_one_line_and_exit_code_2(tmp_path):
    command = [sys.executable, "-m", "leveller", "sim", str(tmp_path / "none.toml"), "--policy", "fair"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2
    assert result.stderr == f"error: {tmp_path}/none.toml does not exist: give the path of a TOML file\n"


def test_sweep(pair, tmp_path):
    args = ["sweep", pair, "--policy", "fair,leveller", "--set", "policy.tau_s=0,4", "--workers", "1"]
    found = json.loads(invoke(*args, "--out", tmp_path / "o.jsonl", "--csv", tmp_path / "o.csv", "--json"))
    assert [(row["policy"], row["settings"]["policy.tau_s"]) for row in found] == [
        ("fair", 0),
        ("leveller", 0),
        ("fair", 4),
        ("leveller", 4),
    ]
    assert found[1]["min_R"] == pytest.approx(5 / 6, abs=1e-9)
    assert len((tmp_path / "o.csv").read_text().splitlines()) == 5
    assert "leveller" in invoke(*args, "--out", tmp_path / "o.jsonl")
    with pytest.raises(UserError, match="--policy 'magic': choose from"):
        invoke("sweep", pair, "--policy", "magic")
