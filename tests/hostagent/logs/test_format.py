import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.logs.format import MAX_ITERATION, RejectedLineError, iteration, milliseconds


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("007", 7), ("1000000000000", MAX_ITERATION)])
def test_iteration(text, value):
    assert iteration(text) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1000000000001", "iteration out of range"),
        (str(10**18), "iteration out of range"),
        ("9" * 40, "iteration out of range"),
        ("-5", "iteration out of range"),
        ("nan", "iteration is not a number"),
        ("1.5", "iteration is not a number"),
        ("1e3", "iteration is not a number"),
        ("", "iteration is not a number"),
        ("١٢", "iteration is not a number"),
        ("²", "iteration is not a number"),
    ],
)
def test_iteration_that_cannot_be(text, reason):
    with pytest.raises(RejectedLineError, match=reason):
        iteration(text)


def test_milliseconds_are_nanoseconds():
    assert milliseconds("1523.4") == 1_523_400_000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nan", "duration out of range"),
        ("inf", "duration out of range"),
        ("-1", "duration out of range"),
        ("0.0", "duration out of range"),
        ("86400001", "duration out of range"),
        ("soon", "duration is not a number"),
    ],
)
def test_milliseconds_that_cannot_be(text, reason):
    with pytest.raises(RejectedLineError, match=reason):
        milliseconds(text)


@given(st.text(max_size=60))
def test_any_text_is_a_number_in_range_or_rejected(text):
    with contextlib.suppress(RejectedLineError):
        assert 0 <= iteration(text) <= MAX_ITERATION
    with contextlib.suppress(RejectedLineError):
        assert 0 <= milliseconds(text) <= 86_400 * 10**9
