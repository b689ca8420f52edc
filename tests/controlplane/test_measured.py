import pytest

from controlplane.measured import MAX_SLACK_US, Shares, shares, slack_ns, slack_us
from controlplane.reports import Timing

MS = 10**6


def timing(communication=300, slack=None, *, iteration=1000, bursts=1, confirmed=False):
    told = None if communication is None else communication * MS
    return Timing(
        iteration * MS, 0, 64, 1.0, told, None if slack is None else slack * MS, confirmed, bursts=bursts
    )


@pytest.mark.parametrize(
    ("measured", "t_ideal_ms", "expected"),
    [
        (None, 800, Shares()),
        (timing(None), 800, Shares()),
        (timing(300), None, Shares(0.7, 0.3)),
        # Under contention only the communication takes longer: alone it is what T_ideal leaves for it.
        (timing(800, iteration=1500), 1000, Shares(0.7, 0.3)),
        # More than was seen, and nothing at all, it cannot be.
        (timing(300), 1200, Shares(0.7, 0.3)),
        (timing(300), 600, Shares(0.7, 0.3)),
        (timing(0), 1000, Shares(1.0, 0.0)),
    ],
)
def test_what_an_iteration_alone_is_made_of(measured, t_ideal_ms, expected):
    found = shares(measured, None if t_ideal_ms is None else t_ideal_ms * MS)
    assert found == pytest.approx(expected)


def test_intensity_is_the_ranks_computing_for_each_second_of_communication():
    assert Shares(0.7, 0.3).intensity(64) == 150.0  # 149.3, to two digits, as all that is measured
    assert shares(timing(333, iteration=1001), None) == Shares(0.67, 0.33)
    assert Shares(0.7, 0.3).intensity(0) == 2.3
    assert Shares(0.7, 0.0).intensity(64) == 0.0


def test_only_a_confirmed_slack_counts_shared_among_the_bursts():
    assert slack_ns(None, 7) == 7
    assert slack_ns(timing(slack=90), 7) == 7
    assert slack_ns(timing(slack=90, confirmed=True), 7) == 90 * MS
    assert slack_ns(timing(slack=90, confirmed=True, bursts=3), 7) == 30 * MS
    assert slack_ns(timing(slack=90, confirmed=True, bursts=0), 7) == 0  # of an agent that does not tell
    assert slack_ns(timing(slack=0, confirmed=True), 7) == 0  # it did harm


def test_slack_is_no_more_than_half_an_iteration_nor_than_a_switch_has_room_for():
    assert slack_us(41_700_000, 1000 * MS) == 41_000
    assert slack_us(24 * 3600 * 10**9, 1000 * MS) == 500_000
    assert slack_us(24 * 3600 * 10**9, 24 * 3600 * 10**9) == MAX_SLACK_US // 1000 * 1000
    assert slack_us(41_700_000, None) == 0
