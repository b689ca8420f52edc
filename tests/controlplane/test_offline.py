"""`leveller levels`: the file, its mistakes, and what it prints."""

import json

import pytest

from controlplane import offline
from controlplane.policies import POLICIES, Scope
from leveller.errors import UserError

FIGURE_6 = {
    "jobs": [{"id": f"J{number}", "rate": number / 10} for number in (1, 2, 3, 4)],
    "flows": [
        {"id": "f1", "job": "J1", "path": ["S1:1"]},
        {"id": "f21", "job": "J2", "path": ["S1:1"]},
        {"id": "f22", "job": "J2", "path": ["S2:1", "S2:2"]},
        {"id": "f3", "job": "J3", "path": ["S2:1"]},
        {"id": "f4", "job": "J4", "path": ["S2:2"]},
    ],
}


def write(tmp_path, content):
    path = tmp_path / "levels.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_static_takes_the_intensity_and_ties_take_iterations(tmp_path):
    question = offline.read(
        write(
            tmp_path,
            {
                "jobs": [
                    {"id": "a", "rate": 0.5, "iterations": 9, "intensity": 3.0},
                    {"id": "b", "rate": 0.5, "iterations": 2},
                ],
                "flows": [{"id": name, "job": name, "path": ["S1:1"]} for name in "ab"],
            },
        )
    )
    assert offline.answer(question, POLICIES["static"], 2, Scope.FABRIC) == {"a": 1, "b": 0}
    assert offline.answer(question, POLICIES["leveller"], 2, Scope.FABRIC) == {"a": 0, "b": 1}


def changed(**fields):
    return {**FIGURE_6, **fields}


JOB = {"id": "J1", "rate": 0.1}
FLOW = {"id": "f1", "job": "J1", "path": ["S1:1"]}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", ["is not JSON", "mend the syntax"]),
        ("", ["is not JSON"]),
        ("[]", ["dictionary"]),
        ('{"jobs": [], "jobs": [], "flows": []}', ["key 'jobs' comes twice"]),
        ('{"jobs": [{"id": "J1", "rate": NaN}], "flows": []}', ["jobs.0.rate = nan", "finite"]),
        ('{"jobs": [{"id": "J1", "rate": 1e999}], "flows": []}', ["jobs.0.rate = inf"]),
        ({"jobs": []}, ["flows is missing"]),
        ({"jobs": [{"id": "J1"}], "flows": []}, ["jobs.0.rate is missing"]),
        (
            {"jobs": [{"id": "J1", "rate": -0.1}], "flows": []},
            ["jobs.0.rate = -0.1", "greater than or equal to 0"],
        ),
        (
            {"jobs": [{"id": "J1", "rate": 1.1}], "flows": []},
            ["jobs.0.rate = 1.1", "less than or equal to 1"],
        ),
        ({"jobs": [{"id": "J1", "rate": "0.5"}], "flows": []}, ["jobs.0.rate = '0.5'", "number"]),
        ({"jobs": [{"id": "J1", "rate": True}], "flows": []}, ["jobs.0.rate: true is no value of it"]),
        ({"jobs": [{"id": "", "rate": 1}], "flows": []}, ["jobs.0.id = ''"]),
        ({"jobs": [{**JOB, "iterations": -1}], "flows": []}, ["jobs.0.iterations = -1"]),
        ({"jobs": [{**JOB, "speed": 1}], "flows": []}, ["jobs.0.speed"]),
        ({"jobs": [JOB, JOB], "flows": []}, ["jobs.1.id = 'J1' comes twice"]),
        ({"jobs": [JOB], "flows": [FLOW, FLOW]}, ["flows.1.id = 'f1' comes twice"]),
        ({"jobs": [JOB], "flows": [{**FLOW, "job": "J9"}]}, ["flows.0.job = 'J9' is not among the jobs"]),
        ({"jobs": [JOB], "flows": [{**FLOW, "path": []}]}, ["flows.0.path = []"]),
        ({"jobs": [JOB], "flows": [{**FLOW, "path": ["S1"]}]}, ["flows.0.path", "'S1' is not SWITCH:PORT"]),
        ({"jobs": [JOB], "flows": [{**FLOW, "path": ["S1:-1"]}]}, ["flows.0.path", "'S1:-1'"]),
        ({"jobs": [JOB], "flows": [{**FLOW, "path": ["S1:1", "S1:1"]}]}, ["link S1:1 comes twice"]),
    ],
)
def test_each_mistake_is_named_with_its_field(tmp_path, content, words):
    path = write(tmp_path, content)
    with pytest.raises(UserError) as caught:
        offline.read(path)
    text = str(caught.value)
    assert "\n" not in text
    for word in [str(path), *words]:
        assert word in text
