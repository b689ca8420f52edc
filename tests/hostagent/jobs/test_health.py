import pytest

from hostagent.jobs.health import Health, Patience, verdict

S = 10**9
KILLED, FAILED = 15, 1 << 8


@pytest.mark.parametrize(
    ("statuses", "value", "total", "failed", "health", "why"),
    [
        ([0, 0], 5, 10, False, Health.ENDED, "exit code 0"),  # early stopping is no death
        ([KILLED, FAILED, KILLED], 5, 10, False, Health.DIED, "exit code 1"),  # the launcher ended the others
        ([0, KILLED], 10, 10, False, Health.DIED, "SIGTERM"),
        ([0, None], 10, 10, False, Health.ENDED, "its log ends at iteration 10 of 10"),
        ([None], 5, 10, False, Health.DIED, "its log ends at iteration 5 of 10"),
        ([None], 5, None, True, Health.DIED, "its log ends with a traceback"),
        ([None], 5, None, False, Health.ENDED, "exit not seen"),
        ([], None, None, False, Health.ENDED, "exit not seen"),
    ],
)
def test_how_it_ended(statuses, value, total, failed, health, why):
    assert verdict(statuses, value, total, failed=failed) == (health, why)


@pytest.mark.parametrize(("gap_s", "limit_s"), [(1, 60), (10, 200), (0, 600)])
def test_patience(gap_s, limit_s):
    assert Patience().limit_ns(gap_s * S) == limit_s * S
