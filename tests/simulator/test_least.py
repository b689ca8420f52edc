"""The least of a row, against numpy's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simulator.least import LANES, least, least_of_lanes, where

numbers = st.one_of(st.floats(0, allow_nan=False), st.sampled_from([0.0, 5e-324, 1.0, np.inf]))


rows = st.integers(1, 5).flatmap(
    lambda steps: st.lists(numbers, min_size=steps * LANES, max_size=steps * LANES)
)


@given(rows, st.data())
def test_it_is_the_minimum_and_is_found_where_it_is(row, data):
    first = data.draw(st.integers(0, len(row) // LANES - 1)) * LANES
    size = data.draw(st.integers(1, (len(row) - first) // LANES)) * LANES
    array = np.array(row)
    found = least(array, first, size)
    assert found == array[first : first + size].min()
    at = where(array, first, size, found)
    assert first <= at < first + size
    assert array[at] == found


@given(rows)
def test_of_one_step_the_minimum_and_its_place_come_at_once(row):
    array = np.array(row)
    for first in range(0, len(row), LANES):
        at, found = least_of_lanes(array, first)
        assert first <= at < first + LANES
        assert array[at] == found == array[first : first + LANES].min()


def test_nothing_has_no_least():
    assert least(np.array([1.0]), 0, 0) == np.inf
