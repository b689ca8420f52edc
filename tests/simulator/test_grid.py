import pytest

from leveller.errors import UserError
from simulator.grid import Point, limit, name, parse, points, variants

TEXT = """
horizon_s = 36
[fabric]
kind = "link"
[[jobs]]
id = "job1"
compute_s = 1
comm_s = 1
"""


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "x.toml"
    found.write_text(TEXT)
    return found


def test_values():
    found = parse(["policy.tau_s=0, 0.5,60", "policy.levels=2..4,8", "policy.scope=fabric,port", "x.y=true"])
    assert found == {
        "policy.tau_s": [0, 0.5, 60],
        "policy.levels": [2, 3, 4, 8],
        "policy.scope": ["fabric", "port"],
        "x.y": [True],
    }


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["policy.tau_s"], "write KEY=VALUE,VALUE..."),
        (["=3"], "write KEY=VALUE,VALUE..."),
        (["a=1", "a=2"], "--set a is given twice"),
        (["a=1..3,2"], "has a value twice"),
        (["policy.levels=8..2"], "policy.levels=8..2 has nothing from 8 to 2: put the smaller number first"),
        (["policy.levels=1..1000000000"], "levels=1..1000000000 has 1000000000 values: keep to 1000000"),
        (["a=1..999999,1000001..1000002"], "has 1000001 values"),
    ],
)
def test_bad_options(options, error):
    with pytest.raises(UserError, match=error):
        parse(options)


def test_every_combination():
    found = points(["fair", "crux"], {"a": [1, 2], "b": ["x"]}, range(2))
    assert len(found) == 8
    assert found[:3] == [
        Point("fair", {"a": 1, "b": "x"}, 0),
        Point("fair", {"a": 1, "b": "x"}, 1),
        Point("crux", {"a": 1, "b": "x"}, 0),
    ]
    assert len({point.key for point in found}) == 8
    assert Point("fair", {"a": 1, "b": 2}, 0).key == Point("fair", {"b": 2, "a": 1}, 0).key
    with pytest.raises(UserError, match="the sweep has 2000000 runs"):
        limit(["fair"], {"a": range(1000)}, 2000)
    limit(["fair"], {"a": range(1000)}, 1000)


def test_keys_are_put_where_they_belong(path):
    found = variants(path, {"policy.levels": [2, 3], "jobs.0.comm_s": [5], "fabric.rate_gbps": [50]})
    assert list(found) == [f"policy.levels={levels} jobs.0.comm_s=5 fabric.rate_gbps=50" for levels in (2, 3)]
    scenario, fabric = found[name({"policy.levels": 3, "jobs.0.comm_s": 5, "fabric.rate_gbps": 50})]
    assert (scenario.policy.levels, scenario.jobs[0].comm_s, fabric.rate) == (3, 5, 50e9 / 8)
    assert list(variants(path, {})) == [""]


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ("policy.level", r"x.toml with --set policy.level=1: policy.level is not a known key: remove it"),
        ("jobs.3.comm_s", "--set jobs.3.comm_s is not in the scenario: name a key"),
        ("jobs.a.comm_s", "--set jobs.a.comm_s is not in the scenario"),
        ("fabric.hosts", "x.toml with --set fabric.hosts=1: fabric.hosts is not a known key"),
        ("policy", "x.toml with --set policy=1: policy = 1: write a table"),
        ("horizon_s.x.y", "--set horizon_s.x.y is not in the scenario"),
    ],
)
def test_keys_that_do_not_exist(path, key, error):
    with pytest.raises(UserError, match=error):
        variants(path, {key: [1]})


def test_numbers_that_python_does_not_take_are_text():
    assert parse([f"a={'9' * 5000}"]) == {"a": ["9" * 5000]}
    assert parse([f"a={'9' * 20}..3"]) == {"a": ["9" * 20 + "..3"]}


def test_a_byte_order_mark(path):
    path.write_text("\ufeff" + TEXT)
    assert list(variants(path, {"policy.levels": [2]})) == ["policy.levels=2"]
