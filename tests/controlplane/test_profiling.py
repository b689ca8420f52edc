"""Who holds the profiling level and when T_ideal counts as measured."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.config import ProfilingSection
from controlplane.profiling import Profiler, State
from controlplane.progress import Iteration

SECOND = 10**9
SETTINGS = ProfilingSection(window=3, tolerance=0.05, max_iterations=6, max_s=60, interval_s=1000)


def alone(*jobs):
    return [frozenset({job}) for job in jobs]


def together(*jobs):
    return [frozenset(jobs)]


def iterations(start_s, *durations_s):
    made, end = [], start_s
    for duration in durations_s:
        end += duration
        made.append(Iteration(round(end * SECOND), round(duration * SECOND)))
    return made


@pytest.fixture
def profiler():
    return Profiler(SETTINGS, Random(1))


def step(profiler, now_s, jobs, components, fixed=None, ready=None):
    profiler.step(round(now_s * SECOND), jobs, fixed or {}, jobs if ready is None else ready, components)


def test_a_stable_job_is_measured_by_the_median_of_its_window(profiler):
    step(profiler, 10, "a", alone("a"))
    assert profiler.profiling() == {"a"}
    assert not profiler.observe("a", iterations(10, 5, 2.0, 2.04), 20 * SECOND)
    assert profiler.observe("a", iterations(19.04, 2.02), 22 * SECOND)
    assert profiler.profiling() == frozenset()
    assert profiler.state("a") is State.MEASURED
    assert profiler.t_ideal_ns("a") == pytest.approx(2.02 * SECOND, abs=1)
    # Spread 1.4826 * 0.02 s of 3 samples: half-width 0.042 s, that is 2.1 %, of (1 - 1/3).
    assert profiler.confidence("a") == pytest.approx(0.6527, abs=1e-3)


@pytest.mark.parametrize(
    ("durations", "t_ideal"),
    [
        ([40, 9, 3, 2.0, 2.01, 2.02], 2.01),  # warm-up and compilation
        ([2.0, 30, 2.02, 31, 2.01], 2.01),  # a checkpoint after every other iteration
        ([2.0, 2.5, 2.02, 2.5, 2.01], 2.01),  # as many evaluations
        ([1.2, 2.0, 2.02, 2.01], 2.01),  # one that a stamp made too short
    ],
)
def test_pauses_neither_count_nor_begin_the_measurement_anew(profiler, durations, t_ideal):
    step(profiler, 10, "a", alone("a"))
    made = iterations(10, *durations)
    assert not profiler.observe("a", made[:-1], 60 * SECOND)
    assert profiler.observe("a", made[-1:], 60 * SECOND)
    assert profiler.t_ideal_ns("a") == pytest.approx(t_ideal * SECOND, abs=1)
    assert 0.6 < profiler.confidence("a") < 1


@given(
    st.floats(0.2, 20),
    st.lists(st.sampled_from([1.5, 2, 3, 5, 10, 1000]), max_size=6, unique=True),
    st.lists(st.integers(0, 4), max_size=1),
    st.integers(0, 2**16),
)
def test_t_ideal_is_right_whatever_pauses_there_are(truth, warm_up, pauses, seed):
    random = Random(seed)
    calm = [truth * random.uniform(1, 1.01) for _ in range(5)]
    for place in pauses:
        calm.insert(place, truth * random.uniform(1.2, 50))
    profiler = Profiler(SETTINGS.model_copy(update={"max_iterations": 20}), Random(1))
    step(profiler, 0, "a", alone("a"))
    assert profiler.observe("a", iterations(0, *(truth * factor for factor in warm_up), *calm), SECOND)
    measured = profiler.t_ideal_ns("a") / SECOND
    assert measured == pytest.approx(truth, rel=0.0101)


def test_iterations_that_began_before_the_profiling_do_not_count(profiler):
    step(profiler, 10, "a", alone("a"))
    profiler.observe("a", iterations(5, 2, 2, 2, 2), 13 * SECOND)  # the last but one began at 9
    profiler.observe("a", iterations(13, 2), 15 * SECOND)
    assert profiler.state("a") is State.PROFILING
    profiler.observe("a", iterations(15, 2), 17 * SECOND)
    assert profiler.t_ideal_ns("a") == 2 * SECOND


def test_jobs_of_one_component_take_turns_in_order_of_arrival(profiler):
    step(profiler, 0, "b", together("b"))
    step(profiler, 1, "abc", together("a", "b", "c"))
    assert profiler.profiling() == {"b"}
    profiler.observe("b", iterations(2, 1, 1, 1), 5 * SECOND)
    step(profiler, 5, "abc", together("a", "b", "c"))
    assert profiler.profiling() == {"a"}
    assert profiler.state("c") is State.WAITING
    assert profiler.t_ideal_ns("c") is None


def test_components_profile_side_by_side(profiler):
    step(profiler, 0, "abc", [frozenset("ab"), frozenset("c")])
    assert profiler.profiling() == {"a", "c"}


def test_when_components_merge_the_first_goes_on_and_the_other_waits(profiler):
    step(profiler, 0, "b", alone("b"))
    step(profiler, 1, "ab", alone("a", "b"))
    assert profiler.profiling() == {"a", "b"}
    step(profiler, 2, "ab", together("a", "b"))
    assert profiler.profiling() == {"b"}
    assert profiler.state("a") is State.WAITING


def test_a_job_that_is_not_ready_does_not_hold_the_others_up(profiler):
    step(profiler, 0, "ab", together("a", "b"), ready="b")
    assert profiler.profiling() == {"b"}
    step(profiler, 1, "ab", together("a", "b"), ready="a")
    assert profiler.profiling() == {"a"}


def test_unstable_iterations_end_with_the_fastest(profiler):
    step(profiler, 0, "a", alone("a"))
    assert profiler.observe("a", iterations(0, 5, 2, 5, 3, 5, 2), 30 * SECOND)
    assert profiler.t_ideal_ns("a") == 2 * SECOND
    assert profiler.confidence("a") == 0


def test_time_is_bounded(profiler):
    step(profiler, 0, "ab", together("a", "b"))
    profiler.observe("a", iterations(0, 20, 25), 45 * SECOND)
    step(profiler, 59, "ab", together("a", "b"))
    assert profiler.profiling() == {"a"}
    step(profiler, 60, "ab", together("a", "b"))
    assert profiler.profiling() == {"b"}
    assert profiler.t_ideal_ns("a") == 20 * SECOND
    step(profiler, 120, "ab", together("a", "b"))
    assert profiler.t_ideal_ns("b") is None
    assert profiler.state("b") is State.MEASURED


def test_a_given_t_ideal_is_never_measured(profiler):
    for now in (0, 10**6):
        step(profiler, now, "a", alone("a"), fixed={"a": 3 * SECOND})
        assert profiler.state("a") is State.MEASURED
        assert profiler.t_ideal_ns("a") == 3 * SECOND
        assert profiler.confidence("a") == 1


def test_a_job_is_measured_again_between_half_and_one_and_a_half_intervals_later():
    again = []
    for seed in range(20):
        profiler = Profiler(SETTINGS, Random(seed))
        step(profiler, 0, "a", alone("a"))
        profiler.observe("a", iterations(0, 1, 1, 1), 3 * SECOND)
        now = 3
        while not profiler.profiling():
            now += 1
            step(profiler, now, "a", alone("a"))
        again.append(now - 3)
        assert profiler.t_ideal_ns("a") == SECOND  # the old one stands until there is a new one
    assert 500 <= min(again) < 700
    assert 1300 < max(again) <= 1501


def test_the_same_seed_gives_the_same_times():
    def run():
        profiler = Profiler(SETTINGS, Random(7))
        seen = []
        for now in range(0, 5000, 10):
            step(profiler, now, "ab", together("a", "b"))
            seen.append(profiler.profiling())
            for job in "ab":
                profiler.observe(job, iterations(now, 1, 1, 1), (now + 3) * SECOND)
        return seen

    assert run() == run()


def test_a_saved_t_ideal_is_taken_over_once():
    profiler = Profiler(SETTINGS, Random(1), {"a": 4 * SECOND})
    step(profiler, 0, "a", alone("a"))
    assert (profiler.state("a"), profiler.t_ideal_ns("a")) == (State.MEASURED, 4 * SECOND)
    assert profiler.confidence("a") is None
    step(profiler, 1, "", [])
    step(profiler, 2, "a", alone("a"))
    assert profiler.state("a") is State.PROFILING


def test_a_job_that_starts_anew_is_measured_anew():
    profiler = Profiler(SETTINGS, Random(1), {"a": 4 * SECOND})
    profiler.restart("a", 0)
    step(profiler, 0, "a", alone("a"))
    assert profiler.t_ideal_ns("a") is None
    assert profiler.profiling() == {"a"}


def test_iterations_of_a_job_that_is_not_profiled_change_nothing(profiler):
    assert not profiler.observe("z", iterations(0, 1, 1, 1), 0)
    step(profiler, 0, "ab", together("a", "b"))
    assert not profiler.observe("b", iterations(0, 1, 1, 1), 0)
    assert profiler.t_ideal_ns("b") is None


def test_it_lasts_long_enough_for_counters_to_be_read():
    profiler = Profiler(ProfilingSection(min_s=0.5), Random(1))
    step(profiler, 10, "a", alone("a"))
    assert not profiler.observe("a", iterations(10, *[0.02] * 20), round(10.41 * SECOND))
    assert profiler.profiling() == {"a"}
    assert profiler.observe("a", iterations(10.4, *[0.02] * 5), round(10.51 * SECOND))
    assert profiler.t_ideal_ns("a") == pytest.approx(0.02 * SECOND, abs=1)


def test_who_begins_anew_each_time_leaves_the_level_to_others_for_ten_times_its_turn(profiler):
    """Job b never tells of an iteration, and begins anew whenever its turn of 60 s is over."""
    held = {"a": 0, "b": 0}
    for now in range(6600):
        step(profiler, now, "ab", together("a", "b"))
        for job in profiler.profiling():
            held[job] += 1
        profiler.observe("a", iterations(now - 1, 1), now * SECOND)
        if profiler.state("b") is State.MEASURED:
            profiler.restart("b", now * SECOND)
    assert 9 * 60 <= held["b"] <= 11 * 60
    assert held["a"] >= 3


def test_a_rest_survives_the_job_and_ends(profiler):
    step(profiler, 0, "ab", together("a", "b"))
    assert profiler.profiling() == {"a"}
    step(profiler, 20, "b", together("b"))  # a goes in the middle of its turn of 20 s
    profiler.observe("b", iterations(20, 1, 1, 1), 23 * SECOND)
    step(profiler, 30, "ab", together("a", "b"))
    step(profiler, 219, "ab", together("a", "b"))
    assert profiler.profiling() == frozenset()
    step(profiler, 220, "ab", together("a", "b"))
    assert profiler.profiling() == {"a"}


def test_alone_nobody_has_to_rest(profiler):
    step(profiler, 0, "a", alone("a"))
    profiler.restart("a", 50 * SECOND)
    step(profiler, 51, "a", alone("a"))
    assert profiler.profiling() == {"a"}


def test_a_job_is_measured_again_when_asked_for_and_keeps_what_it_has_until_then(profiler):
    step(profiler, 0, "ab", alone("a", "b"), fixed={"b": SECOND})
    profiler.observe("a", iterations(0, 1, 1, 1), 3 * SECOND)
    for job in "abc":
        profiler.again(job, 4 * SECOND)
    step(profiler, 4, "ab", alone("a", "b"), fixed={"b": SECOND})
    assert profiler.profiling() == {"a"}
    assert profiler.t_ideal_ns("a") == SECOND
