import io
import json

from rich.console import Console

from topo import demo, scenario

OUTCOME = demo.Outcome(
    "leveller", (demo.JobOutcome("job1", 0.84567, 40, 6 / 7), demo.JobOutcome("job2", 0.85, 28, 6 / 7))
)
PLAN = demo.Plan("pair", scenario.find("pair"), ["leveller"], "softswitch", "fabric", 15, 45)


def test_json_has_the_promised_keys_and_no_others():
    assert json.loads(json.dumps(OUTCOME.to_json())) == {
        "policy": "leveller",
        "jobs": [{"id": "job1", "R": 0.8457, "iterations": 40}, {"id": "job2", "R": 0.85, "iterations": 28}],
        "min_R": 0.8457,
        "avg_R": 0.8478,
    }


def shown(outcome):
    console = Console(file=io.StringIO(), width=100)
    console.print(demo.table(PLAN, [outcome]))
    return console.file.getvalue()


def test_table_has_theory_beside_what_was_measured():
    text = shown(OUTCOME)
    assert "0.846 (0.857)" in text
    assert "job2 (1, 2)" in text
    assert text.count("(0.857)") == 4  # both jobs, minimum and average


def test_table_says_so_where_theory_is_unknown():
    unknown = demo.Outcome(
        "fair", (demo.JobOutcome("job1", 0.5, 4, None), demo.JobOutcome("job2", 0.6, 4, 0.75))
    )
    assert "0.500 (?)" in shown(unknown)
    assert shown(unknown).count("(?)") == 3  # its own, minimum and average
