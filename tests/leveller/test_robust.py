import pytest
from hypothesis import given
from hypothesis import strategies as st

from leveller.robust import Estimate, agreeing, estimate


def test_a_median_and_a_spread_that_outliers_do_not_move():
    calm = estimate([1.0, 1.1, 0.9, 1.05, 0.95])
    wild = estimate([1.0, 1.1, 0.9, 1.05, 0.95, 60.0, 500.0])
    assert (calm.value, calm.count) == (1.0, 5)
    assert calm.spread == pytest.approx(1.4826 * 0.05)
    assert wild.value == 1.05
    assert wild.spread < 0.2


def test_confidence_grows_with_samples_and_falls_with_spread():
    assert Estimate(1.0, 0.0, 1).confidence == 0
    assert Estimate(1.0, 0.0, 10).confidence == pytest.approx(0.9)
    # Half-width 1.96 * 1.2533 * 0.1 / sqrt(25) = 0.0491.
    assert Estimate(1.0, 0.1, 25).confidence == pytest.approx((1 - 0.049129) * 0.96, abs=1e-4)
    assert Estimate(1.0, 10.0, 4).confidence == 0
    assert Estimate(0.0, 0.0, 9).confidence == 0


def test_nothing_cannot_be_estimated():
    with pytest.raises(ValueError, match="no samples"):
        estimate([])


def test_agreeing_samples():
    assert agreeing([2.0, 2.04, 2.02], 3, 0.05) == [2.0, 2.02, 2.04]
    assert agreeing([2.0, 2.2, 2.02], 3, 0.05) == []
    assert agreeing([2.0, 60.0, 2.02, 61.0, 2.04], 3, 0.05) == [2.0, 2.02, 2.04]  # two checkpoints
    assert agreeing([1.0, 2.0, 2.02, 2.04], 3, 0.05) == [2.0, 2.02, 2.04]  # one that was cut short
    assert agreeing([1.0, 1.5, 2.0, 2.02, 2.04], 3, 0.05) == []  # two: nothing is sure
    assert agreeing([2.0], 3, 0.05) == []


@given(
    st.lists(st.floats(1, 1.04), min_size=8, max_size=20),
    st.lists(st.floats(3, 1e6), max_size=7),
    st.randoms(use_true_random=False),
)
def test_pauses_never_move_the_estimate_by_more_than_the_tolerance(iterations, pauses, random):
    mixed = [*iterations, *pauses]
    random.shuffle(mixed)
    found = estimate(agreeing(mixed, 8, 0.05))
    assert found.count == len(iterations)
    assert 1 <= found.value <= 1.04
    assert 0.9 * min(iterations) <= estimate(mixed).value <= 1.04
