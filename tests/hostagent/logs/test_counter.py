import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from hostagent.logs.counter import MAX_DURATIONS, CounterState, IterationCounter
from hostagent.logs.format import MAX_DURATION_NS, MAX_ITERATION, Mark

S = 10**9


def count(values, *, every_s=1.0, stated_s=None, counter=None):
    """Feed the values ``every_s`` apart; return the counter and all durations in seconds."""
    counter = counter or IterationCounter()
    now, durations = counter.last_ns or 100 * S, []
    for value in values:
        now += int(every_s * S)
        stated = None if stated_s is None else int(stated_s * S)
        durations += [ns / S for ns in counter.see(Mark(value, stated), now)]
    return counter, durations


def test_fresh_run():
    counter, durations = count([1, 2, 3, 4], stated_s=0.9)
    assert counter.iterations == 4
    assert counter.last_ns == 104 * S
    assert durations == [0.9] * 4


def test_durations_by_the_clock_where_the_line_has_none():
    counter, durations = count([1, 2, 4], every_s=2)
    assert counter.iterations == 4
    assert durations == [2, 1, 1]  # the first has no beginning that was seen


def test_lines_that_ranks_repeat_count_once():
    counter, durations = count([1, 1, 1, 2, 2, 2, 3, 3], stated_s=0.1)
    assert counter.iterations == 3
    assert len(durations) == 3


def test_log_interval_live():
    counter, durations = count([100, 200, 300], every_s=100, stated_s=1)
    assert counter.iterations == 300
    assert durations == [1.0] * (1 + 100 + 100)


def test_log_interval_in_a_burst_from_a_buffered_log():
    counter, _ = count([100, 200, 300, 400], every_s=0, stated_s=1)
    assert counter.iterations == 400


def test_log_interval_with_a_first_line_of_its_own():
    counter, _ = count([1, 11, 21, 31], every_s=0, stated_s=1)
    assert counter.iterations == 31


@pytest.mark.parametrize(
    ("values", "iterations"),
    [
        ([1, 10, 20, 30], 30),  # torchtitan: step 1, and then every tenth
        ([5010, 5020, 5030], 30),
        ([1, 10, 50, 100, 150], 150),  # the interval is known late
        ([1, 1000, 1010, 1020, 1030], 31),  # an old line, and then another run
    ],
)
def test_log_interval_in_lines_without_durations(values, iterations):
    counter, durations = count(values, every_s=10)
    assert counter.iterations == iterations
    assert all(duration > 0 for duration in durations)


def test_a_bar_that_was_only_drawn_is_no_beginning():
    counter, _ = count([0, 501, 502, 503], stated_s=1)
    assert counter.iterations == 3


def test_a_bar_read_long_after_it_was_drawn():
    """It leaps as it pleases: by 5, by 14, by 9."""
    counter, durations = IterationCounter(), []
    for value in (5, 10, 24, 33, 36):
        durations += counter.see(Mark(value, None, 100, pace_ns=S), 1000 * S, live=False)
    assert (counter.iterations, counter.last_ns, durations) == (36, 1000 * S, [])
    assert counter.see(Mark(37, None, 100, pace_ns=S), 1001 * S) == []  # the last was not seen when it came
    assert counter.see(Mark(39, None, 100, pace_ns=S), 1003 * S) == [S, S]
    assert counter.total == 100


def test_lines_that_were_lost_count_where_there_was_time():
    counter = IterationCounter(started_ns=0)
    for value in (100, 200, 300, 700, 800):
        counter.see(Mark(value, S), 900 * S, live=False)
    assert counter.iterations == 800
    counter = IterationCounter(started_ns=500 * S)
    for value in (100, 200, 300, 700, 800):
        counter.see(Mark(value, S), 900 * S, live=False)
    assert counter.iterations == 500  # it jumped: 400 iterations were not done here


def test_who_tells_how_it_began_is_counted_from_there():
    counter = IterationCounter()
    counter.see(Mark(57, first=11), S)
    counter.see(Mark(58, first=11), 2 * S)
    assert counter.iterations == 48


def test_what_was_no_training_is_forgotten():
    counter, _ = count([100, 200, 300], every_s=10)
    count([7, 900, 8], counter=counter)
    counter.see(Mark(5001, S, anew=True), 400 * S)
    counter.see(Mark(5002, S), 401 * S)
    assert (counter.iterations, counter.value, counter.gap_ns) == (2, 5002, S)
    assert counter.rejected == {"stray iteration": 1}


def test_ranks_that_lag_reject_nothing():
    counter, _ = count([1, 2, 3, 2, 3, 4, 3, 2, 4, 5, 4, 6])
    assert counter.iterations == 6
    assert not counter.rejected


def test_the_last_line_of_a_log_at_rest():
    counter, _ = count([100, 200], every_s=0)
    assert counter.iterations == 1
    counter.settle()
    assert (counter.iterations, counter.value) == (200, 200)
    counter, _ = count([1, 2, 3, 900], every_s=0)
    counter.settle()
    assert (counter.iterations, counter.rejected) == (3, {"unconfirmed iteration": 1})


def test_iterations_between_lines_are_estimated_and_how_surely():
    counter, _ = count([100, 200, 300], every_s=100, stated_s=1)
    then = counter.last_ns
    assert counter.estimate(then) == (0, 0)
    assert counter.estimate(then + 37 * S) == (37, 1)
    assert counter.estimate(then + 120 * S) == (99, 1)  # never what the next line is to say
    assert counter.estimate(then + 200 * S) == (99, 99)  # it is overdue
    assert counter.gap_ns == 100 * S
    irregular = IterationCounter()
    for number, stated in enumerate((1.0, 1.0, 1.2, 0.8), 1):
        irregular.see(Mark(100 * number, int(stated * S)), number * 100 * S)
    assert irregular.estimate(irregular.last_ns + 50 * S) == (50, 21)


@pytest.mark.parametrize("values", [[], [100], [1, 2, 3], [100, 101]])
def test_nothing_is_estimated_where_each_iteration_is_told_or_none(values):
    counter, _ = count(values, every_s=1, stated_s=1)
    assert counter.estimate(counter.last_ns + 50 * S) == (0, 0)


@pytest.mark.parametrize(("values", "iterations"), [([5001, 5002, 5003], 3), ([5100, 5200], 200)])
def test_resumed_run_counts_from_where_it_resumed(values, iterations):
    counter, _ = count(values, every_s=values[1] - values[0], stated_s=1)
    assert counter.iterations == iterations


def test_jump_ahead_counts_as_one_interval_once_confirmed():
    counter, _ = count([1, 2, 3], stated_s=1)
    count([5000], counter=counter, stated_s=1)
    assert counter.iterations == 3
    count([5001, 5002], counter=counter, stated_s=1)
    assert counter.iterations == 6
    assert not counter.rejected


def test_rollback_takes_back():
    counter, _ = count(range(1, 501), stated_s=1)
    count([401], counter=counter, stated_s=1)
    assert counter.iterations == 500
    count([402, 403], counter=counter, stated_s=1)
    assert counter.iterations == 403
    assert not counter.rejected


def test_rollback_beyond_the_beginning_starts_anew():
    counter, _ = count([5001, 5002, 5003], stated_s=1)
    count([1, 2, 3], counter=counter, stated_s=1)
    assert counter.iterations == 3


@pytest.mark.parametrize("stray", [12, 10**11, 1, 0])
def test_stray_value_changes_nothing_and_is_counted(stray):
    counter, _ = count(range(101, 111), stated_s=1)
    before = counter.iterations
    assert count([stray], counter=counter, stated_s=1)[1] == []
    assert counter.iterations == before
    count([111, 112], counter=counter, stated_s=1)
    assert counter.iterations == before + 2
    assert counter.rejected == {"stray iteration": 1}


def test_many_stray_values_in_a_row():
    counter, _ = count([1, 2, 3], stated_s=1)
    count([900, 70, 500_000], counter=counter, stated_s=1)
    count([4, 5], counter=counter, stated_s=1)
    assert counter.iterations == 5
    assert counter.rejected == {"stray iteration": 3}


def test_lost_lines_are_made_up_for_when_there_was_time():
    counter, _ = count([1, 2, 3], stated_s=1)
    count([10], counter=counter, every_s=7, stated_s=1)
    assert counter.iterations == 10


def test_changed_log_interval():
    counter, _ = count([1, 2, 3], stated_s=1)
    count([13, 23, 33], counter=counter, every_s=0, stated_s=1)
    assert counter.iterations == 33


def test_durations_of_one_mark_are_bounded():
    _, durations = count([10_000, 20_000], every_s=20_000, stated_s=1)
    assert len(durations) == 1 + MAX_DURATIONS


MARKS = st.lists(
    st.tuples(
        st.integers(0, 10**12) | st.integers(0, 50),
        st.none() | st.integers(1, 10**12),
        st.integers(0, 10**11),
    )
)


@given(MARKS)
def test_whatever_the_log_claims(marks):
    counter, now = IterationCounter(), 1
    for value, stated, passed in marks:
        now += passed
        durations = counter.see(Mark(value, stated), now, live=passed % 3 > 0)
        assert len(durations) <= MAX_DURATIONS
        assert all(duration > 0 for duration in durations)
        assert counter.iterations >= 0
        assert counter.last_ns <= now
        estimate = counter.estimate(now + passed)
        assert 0 <= estimate.error <= estimate.iterations or estimate == (0, 0)


@given(st.lists(st.integers(0, 10**12), max_size=20))
def test_a_run_that_goes_on_is_believed_again_whatever_came_before(strays):
    counter, _ = count([1, 2, 3], stated_s=1)
    count(strays, counter=counter, stated_s=1)
    count(range(7_000_000, 7_000_003), counter=counter, stated_s=1)
    before = counter.iterations
    count(range(7_000_003, 7_000_013), counter=counter, stated_s=1)
    assert counter.iterations == before + 10


@given(
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from([None, 10**8, 10**9])), max_size=20),
    st.integers(0, 20),
)
def test_one_that_goes_on_from_a_state_counts_as_if_it_had_never_stopped(marks, stop):
    whole, first = IterationCounter(1), IterationCounter(1)
    second = first
    for number, (completed, duration_ns) in enumerate(marks):
        if number == stop:
            second = IterationCounter(1)
            second.go_on(first.state())
        for counter in (whole, second):
            counter.see(Mark(completed, duration_ns), (number + 1) * 10**9, live=False)
    assert second.state() == whole.state()
    assert second.iterations == whole.iterations


def kept(counter):
    """What it knows, as it is kept: raises ValidationError where a number cannot be."""
    return TypeAdapter(CounterState).validate_json(TypeAdapter(CounterState).dump_json(counter.state()))


def test_five_lines_of_a_thousand_years_can_be_kept():
    counter, _ = count([1, 10**9, 2 * 10**9, 3 * 10**9, 4 * 10**9], stated_s=86_400)
    assert kept(counter) == counter.state()
    assert (counter.value, counter.state().accounted_ns) == (4 * 10**9, 2**63 - 1)


def test_a_pause_of_more_than_a_day_can_be_kept():
    counter, _ = count([1, 2, 3, 4])
    counter, durations = count([5], every_s=25 * 3600, counter=counter)
    assert durations == [25 * 3600]
    assert kept(counter).recent == (*[(1, S)] * 3, (1, 24 * 3600 * S))


def test_a_count_never_begins_before_0():
    counter = IterationCounter(S)
    for now_s, completed, stated_ns in (
        (2, 4, S),
        (12, 1, S),
        (22, 14, None),
        (32, 97, None),
        (33, 298, None),
    ):
        counter.see(Mark(completed, stated_ns), now_s * S)
    assert (kept(counter).base, counter.iterations) == (0, 298)


def test_a_count_beyond_all_that_can_be_is_rejected():
    counter, _ = count([1, 2, 10**12 + 1, 3])
    assert (counter.iterations, counter.rejected) == (3, {"iteration out of range": 1})


@given(
    st.lists(
        st.builds(
            Mark,
            st.integers(0, 300) | st.integers(0, MAX_ITERATION + 1),
            st.none() | st.integers(1, MAX_DURATION_NS),
            st.none() | st.integers(1, 10**13 - 1),
            pace_ns=st.none() | st.integers(1, MAX_DURATION_NS),
            first=st.none() | st.integers(0, MAX_ITERATION),
        ),
        max_size=12,
    ),
    st.integers(1, 10**15),
)
def test_whatever_a_log_says_can_be_kept(marks, every_ns):
    counter, now = IterationCounter(1), 1
    for mark in marks:
        now += every_ns
        counter.see(mark, now)
        assert kept(counter) == counter.state()
    counter.settle()
    assert kept(counter) == counter.state()
