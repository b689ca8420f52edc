import pytest

from simulator.recovery import Recovery, recovery

# Job 1 did an iteration of 1 s a second until job 2 came at 10. Two more took it until 16, and since then it
# does one every 2 s; so does job 2, after two in its first 2 s.
FIRST = {2: 2, 4: 4, 6: 6, 8: 8, 10: 10, 12: 10, 14: 10, **{t: 12 + (t - 16) / 2 for t in range(16, 51, 2)}}
SECOND = {t: 2 + (t - 12) / 2 for t in range(12, 51, 2)}
HISTORY = [
    (float(t), {1: FIRST[t] / t} | ({2: SECOND[t] / (t - 10)} if t in SECOND else {}))
    for t in range(2, 51, 2)
]
STARTS = {1: 0.0, 2: 10.0}


def test_the_worked_example():
    # Counted from 10 on, job 1's R at t >= 16 is 1/2 - 1 / (t - 10), and job 2's 1/2 + 1 / (t - 10). The
    # lower is 0.475 at 50, and no less than 95 % of that from 30.5 on; the next sample is at 32.
    assert recovery(HISTORY, STARTS, 10.0, 50.0) == Recovery(pytest.approx(0.475), 22.0)


def test_it_is_watched_until_the_end_only():
    # At 20 it is 0.4, and 95 % of that is reached at 18.33. Until 16 it is 1/3: two iterations in 6 s.
    assert recovery(HISTORY, STARTS, 10.0, 20.0) == Recovery(pytest.approx(0.4), 10.0)
    assert recovery(HISTORY, STARTS, 10.0, 16.0) == Recovery(pytest.approx(1 / 3), 0.0)


def test_a_job_that_starves():
    history = [(t, {2: rates[2]}) if t > 10 else (t, rates) for t, rates in HISTORY]
    assert recovery(history, STARTS, 10.0, 50.0) == Recovery(0.0, 40.0)


def test_nothing_was_seen():
    assert recovery(HISTORY, STARTS, 10.0, 11.0) is None
    assert recovery([], STARTS, 10.0, 50.0) is None
