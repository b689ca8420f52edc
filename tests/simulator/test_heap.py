"""The heap of links, against a plain minimum."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simulator import assemble, heap
from simulator.state import HEAP, NONE

LINKS = 9
steps = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.integers(0, LINKS - 1), st.integers(0, 9)),
        st.tuples(st.just("lower"), st.integers(0, LINKS - 1), st.integers(1, 5)),
        st.tuples(st.just("raise"), st.just(0), st.integers(1, 5)),
        st.tuples(st.just("drop"), st.just(0), st.just(0)),
    )
)


@given(steps)
def test_the_top_has_the_smallest_key(todo):
    state = assemble.empty(np.ones(LINKS), 0)
    state.spot[:] = NONE
    keys = {}
    for what, link, number in todo:
        if what == "insert" and link not in keys:
            keys[link] = number
            heap.insert(state, link, number)
        elif what == "lower" and link in keys:
            keys[link] -= number
            heap.lower(state, link, keys[link])
        elif what == "raise" and keys:
            keys[int(state.narrow[0])] += number
            heap.raise_top(state, keys[int(state.narrow[0])])
        elif what == "drop" and keys:
            del keys[int(state.narrow[0])]
            heap.drop_top(state)
        assert state.counts[HEAP] == len(keys)
        assert {link: state.key[state.spot[link]] for link in keys} == keys
        assert {int(link) for link in np.flatnonzero(state.spot != NONE)} == set(keys)
        if keys:
            assert state.key[0] == min(keys.values())
