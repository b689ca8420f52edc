import pytest

from leveller.errors import UserError
from topo import scenario


def write(tmp_path, **changes):
    text = {
        "unit_s": "0.5",
        "host_pairs": "1",
        "rate": "100",
        "id": '"job1"',
        "compute": "1",
        "hosts": '["h1", "h2"]',
    } | changes
    path = tmp_path / "x.toml"
    path.write_text(
        f"unit_s = {text['unit_s']}\n"
        f"[fabric]\nkind = 'pair'\nhost_pairs = {text['host_pairs']}\n"
        f"rate_mbps = {text['rate']}\nhost_rate_mbps = 1000\n"
        f"[[jobs]]\nid = {text['id']}\ncompute = {text['compute']}\ncommunicate = 2\n"
        f"hosts = {text['hosts']}\n"
    )
    return str(path)


def test_the_scenarios_that_come_with_the_package():
    assert {"pair", "trio", "leafspine"} <= set(scenario.names())
    for name in scenario.names():
        assert scenario.find(name).fabric.build().hosts


def test_crux_orders_by_computation_per_communication():
    assert scenario.find("pair").intensities() == {"job1": 2, "job2": 1}
    assert scenario.find("trio").intensities() == {"job1": 1, "job2": 1, "job3": 4}


def test_volume_fills_the_communication_time_at_line_rate(tmp_path):
    made = scenario.find(write(tmp_path))
    (job,) = made.jobs
    assert made.ideal_s(job) == pytest.approx(0.5 + 0.985)
    # One second of 100 Mbit/s, less headers and slack.
    assert 12_100_000 < made.volume(job) < 12_500_000


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hosts": '["h1", "h9"]'}, "job job1 names host h9, which is not one of h1, h2"),
        ({"hosts": '["h1", "h1"]'}, "host h1 is given twice"),
        ({"hosts": '["h1"]'}, "jobs.0.hosts"),
        ({"compute": "-1"}, "jobs.0.compute = -1"),
        ({"compute": "nan"}, "jobs.0.compute"),
        ({"unit_s": "0"}, "unit_s = 0"),
        ({"rate": "inf"}, "rate_mbps"),
        ({"id": '"a b"'}, "jobs.0.id"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_the_field(tmp_path, changes, words):
    path = write(tmp_path, **changes)
    with pytest.raises(UserError) as error:
        scenario.find(path)
    assert path in str(error.value)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_name_lists_those_there_are():
    with pytest.raises(UserError, match=r"there is no scenario 'quartet': choose one of .*pair"):
        scenario.find("quartet")
