"""The least of a row, against numpy's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simulator.least import least, where

numbers = st.one_of(st.floats(0, allow_nan=False), st.sampled_from([0.0, 5e-324, 1.0, np.inf]))


@given(st.lists(numbers, min_size=1, max_size=40), st.data())
def test_it_is_the_minimum_and_is_found_where_it_is(row, data):
    first = data.draw(st.integers(0, len(row) - 1))
    size = data.draw(st.integers(1, len(row) - first))
    array = np.array(row)
    found = least(array, first, size)
    assert found == array[first : first + size].min()
    at = where(array, first, size, found)
    assert first <= at < first + size
    assert array[at] == found


def test_nothing_has_no_least():
    assert least(np.array([1.0]), 0, 0) == np.inf
