import csv
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

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


def leveller(*args, stdout=subprocess.PIPE, shell="{}", **environment):
    """Run a whole process."""
    command = shell.format(shlex.join([sys.executable, "-m", "leveller", "sim", *map(str, args)]))
    return subprocess.run(
        ["sh", "-c", command],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": "", **environment},
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_full_disk_behind_standard_output(pair, form):
    with Path("/dev/full").open("w") as full:
        result = leveller(pair, "--policy", "fair", *form, stdout=full, NUMBA_DISABLE_JIT="1")
    assert result.returncode == 2
    assert result.stderr == (
        "error: standard output cannot be written (No space left on device): "
        "make room there, or send it elsewhere\n"
    )


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_reader_that_has_gone(pair, form):
    result = leveller(pair, "--policy", "fair", *form, shell="{} | true", NUMBA_DISABLE_JIT="1")
    assert (result.returncode, result.stderr) == (0, "")


def test_a_table_in_a_pipe_is_as_wide_as_it_has_to_be(pair):
    args = ["--policy", "leveller,symphony_like", "--seeds", "2"]
    text = invoke("compare", pair, *args)
    assert "…" not in text
    assert max(map(len, text.splitlines())) > 80
    keys = ["--set", "policy.half_life_s=0.123456789012345", "--set", "horizon_s=30.1234567890123"]
    text = invoke("sweep", pair, *args, *keys, "--workers", "1")
    assert "…" not in text
    assert "30.1234567890123" in text


def test_what_a_job_is_called_is_not_markup(pair):
    pair.write_text(PAIR.replace('"job1"', '"[/b]:warning:"'))
    assert "[/b]:warning:" in invoke(pair, "--policy", "fair")


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (
            ["comapre", "PAIR"],
            "sim comapre: there is no such command, and no such file: give .* compare, sweep",
        ),
        (["compare", "PAIR", "--policy", "fair,fair"], "--policy names fair twice: name each once"),
        (
            ["sweep", "PAIR", "--seeds", "600000", "--policy", "fair,crux"],
            "the sweep has 1200000 runs: keep to",
        ),
        (
            ["sweep", "PAIR", "--set", "policy.levels=1..1000", "--set", "policy.tau_s=1..1001"],
            "the sweep has 10010000 runs",
        ),
        (["sweep", "PAIR", "--set", "policy.levels=8..2"], "nothing from 8 to 2"),
    ],
)
def test_command_lines_that_are_none(pair, args, error):
    with pytest.raises(UserError, match=error):
        invoke(*(pair if word == "PAIR" else word for word in args))


def test_a_scenario_may_have_any_name(pair):
    assert "job1" in invoke(pair.rename(pair.with_name("mine")), "--policy", "fair")


def test_the_first_run_says_that_it_compiles(pair, tmp_path):
    pytest.importorskip("numba", reason="numba is not installed: nothing is compiled")
    ask = "import simulator.cli as c; c._tell_of_compiling()"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}

    def told():
        command = [sys.executable, "-c", ask]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stderr

    assert told() == "compiling the inner loops: some 20 to 80 s, once for this version of leveller\n"
    (folder,) = (tmp_path / "leveller").iterdir()
    (folder / "engine.nbi").write_text("")
    assert told() == ""
    environment["NUMBA_DISABLE_JIT"] = "1"
    (folder / "engine.nbi").unlink()
    assert told() == ""
