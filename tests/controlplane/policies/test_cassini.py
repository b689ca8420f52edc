"""Scores and shifts by hand, and what must hold of any."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.model import Link
from controlplane.policies import cassini
from controlplane.policies.cassini import ANGLES, Pattern

A, B, C = Link("S1", 1), Link("S1", 2), Link("S2", 1)


def sends(compute, comm, share=1.0):
    """A job that computes, then sends."""
    return Pattern(compute + comm, ((compute, compute + comm, share),))


def test_the_circle_is_the_least_common_multiple_and_sampled_every_5_degrees():
    # 2 s and 3 s make 6 s: 12 angles a second. The pair of the worked example sends 3 x 1 and 2 x 2 of 6 s.
    one, two = (cassini.around(job, 6000) for job in (sends(1, 1), sends(1, 2)))
    assert (len(one), sum(one), sum(two)) == (72, 36, 48)
    assert one[:36] == [0] * 12 + [1] * 12 + [0] * 12


def test_a_perfect_fit_takes_turns():
    fit = cassini.fit((sends(1, 1), sends(1, 1)))
    assert fit.score == 1
    assert fit.shifts == (0, 1)


def test_half_the_capacity_each_fits_as_it_is():
    assert cassini.fit((sends(1, 2, 0.5), sends(2, 2, 0.5))) == cassini.Fit(1, (0, 0))


def test_the_worked_pair_cannot_fit():
    # 7 s of sending in 6; job 2's two gaps of 1 s are 3 s apart, so job 1, every 2 s, fills 1 s of them.
    assert cassini.fit((sends(1, 1), sends(1, 2))).score == pytest.approx(1 - 2 / 6)


def test_the_worked_trio_fits_in_part():
    # 5 s of sending in a circle of 3.
    assert cassini.fit((sends(1, 2), sends(1, 2), sends(2, 1))).score == pytest.approx(1 - 2 / 3)


def test_a_score_may_be_negative():
    assert cassini.fit((sends(0, 1),) * 4).score == -2


def test_shifts_along_a_chain():
    # b is 1 s after a on A; on B, c is 1 s after b, so 2 s after a: at 0 of its 2 s.
    on = {A: {"a": sends(1, 1), "b": sends(1, 1)}, B: {"b": sends(1, 1), "c": sends(1, 1)}}
    assert cassini.time_shifts(on) == {"a": 0, "b": 1, "c": 0}


def test_shifts_are_modulo_the_own_iteration():
    # On a circle of 4 s a sends in [1, 2), b in [1, 2) and [3, 4): b goes 1 s later and a stays.
    assert cassini.time_shifts({A: {"a": sends(1, 3, 0.0), "b": sends(1, 1)}}) == {"a": 0, "b": 0}
    assert cassini.time_shifts({A: {"x": Pattern(4.0, ((1.0, 2.0, 1.0),)), "y": sends(1, 1)}}) == {
        "x": 0,
        "y": 1,
    }


def test_jobs_apart_are_at_0():
    assert cassini.time_shifts({A: {"a": sends(1, 1)}, B: {"b": sends(1, 3)}}) == {"a": 0, "b": 0}


def test_where_there_is_a_loop_the_tree_of_the_highest_score_counts():
    # a and b meet on A, which fits (score 1, shift 1), and on C, which does not.
    full = sends(0, 2)
    fits = {"a": sends(1, 1), "b": sends(1, 1)}
    assert cassini.time_shifts({A: fits, C: {"a": full, "b": full}}) == {"a": 0, "b": 1}
    edges = [(0.5, C, "a", 9.0), (0.5, C, "b", 9.0), (1.0, A, "a", 0.0), (1.0, A, "b", 1.0)]
    assert cassini.spanning_tree(edges) == [edges[2], edges[3], edges[0]]


times = st.integers(0, 4), st.integers(1, 4), st.sampled_from([0.5, 1.0])
patterns = st.lists(st.builds(sends, *times), min_size=2, max_size=3)


@settings(max_examples=40, deadline=None)
@given(patterns)
def test_no_rotation_of_two_or_three_jobs_scores_better(jobs):
    fit = cassini.fit(tuple(jobs))
    period = round(1000 * max(job.iteration_s for job in jobs))
    while any(period % round(1000 * job.iteration_s) for job in jobs):
        period += 1000
    demands = [cassini.around(job, period) for job in jobs]

    def score(turns):
        total = [
            sum(demand[(angle - turn) % ANGLES] for demand, turn in zip(demands, turns, strict=True))
            for angle in range(ANGLES)
        ]
        return 1 - sum(max(one - 1, 0) for one in total) / ANGLES

    step = 1 if len(jobs) == 2 else 6
    turns = [range(0, round(ANGLES * 1000 * job.iteration_s / period), step) for job in jobs[1:]]
    assert fit.score <= 1
    assert fit.score >= max(score((0, *turn)) for turn in product(*turns)) - 1e-9
    for shift, job in zip(fit.shifts, jobs, strict=True):
        assert 0 <= shift < job.iteration_s


@settings(max_examples=20, deadline=None)
@given(st.lists(st.builds(sends, *times), min_size=5, max_size=7))
def test_many_jobs_score_at_least_as_well_as_without_shifts(jobs):
    score = cassini.fit(tuple(jobs)).score
    assert score <= 1
    period = 1
    for job in jobs:
        step = period
        while period % round(1000 * job.iteration_s):
            period += step
    total = [sum(at) for at in zip(*(cassini.around(job, period) for job in jobs), strict=True)]
    # Moves that do not help are not made, but the first placement is greedy: a little may be lost.
    assert score >= 1 - sum(max(one - 1, 0) for one in total) / ANGLES - 0.1


job_names = st.sampled_from("abcd")
on_links = st.dictionaries(
    st.sampled_from([A, B, C]), st.dictionaries(job_names, st.just(sends(1, 1)), min_size=1), max_size=3
)


@settings(max_examples=40, deadline=None)
@given(on_links)
def test_without_a_loop_every_link_gets_its_own_rotation(links):
    shifts = cassini.time_shifts(links)
    assert set(shifts) == {job for on in links.values() for job in on}
    edges = [(1.0, link, job, 0.0) for link, on in links.items() if len(on) > 1 for job in on]
    if len(cassini.spanning_tree(edges)) < len(edges):
        return
    for on in links.values():
        if len(on) > 1:
            jobs = sorted(on)
            fit = cassini.fit(tuple(on[job] for job in jobs))
            moved = {(shifts[job] - own) % 2 for job, own in zip(jobs, fit.shifts, strict=True)}
            assert len(moved) == 1
