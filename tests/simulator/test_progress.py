import pytest

from simulator.progress import Account


def test_all_counts():
    account = Account(start=10.0)
    assert account.rate(0, 2.0, 10.0) == 0
    assert account.rate(3, 2.0, 18.0) == pytest.approx(0.75)
    assert account.rate(3, 2.0, 22.0) == pytest.approx(0.5)


def test_a_half_life_forgets():
    account = Account(0.0, half_life=10.0)
    for second in range(100):
        account.rate(0, 1.0, float(second))  # nothing for long
    starved = account.rate(0, 1.0, 100.0)
    for second in range(100, 121):
        recovering = account.rate(second - 100, 1.0, float(second))
    assert starved == 0
    assert recovering == pytest.approx(0.75, abs=0.03)  # two half-lives at full speed
    plain = Account(0.0)
    assert plain.rate(20, 1.0, 120.0) == pytest.approx(1 / 6)


def test_steady_progress_has_the_same_rate_with_a_half_life():
    account = Account(0.0, half_life=50.0)
    for iteration in range(400):
        rate = account.rate(iteration, 1.0, 2.0 * iteration)
    assert rate == pytest.approx(0.5, abs=0.02)


def test_optimism_is_bounded():
    account = Account(0.0, optimism=10.0)
    assert account.rate(0, 1.0, 0.0) == 1
    assert account.rate(0, 1.0, 10.0) == pytest.approx(0.5)
    assert account.rate(0, 1.0, 990.0) == pytest.approx(0.01)
