"""Timing of synthetic jobs whose truth is known.

Each iteration computes, sends, and computes on while it sends: it ends a little after both are done.
"""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostagent.timing import LEAST, Burst, Iteration, Timing, measure, slack

MS = 1_000_000


def run(
    count,
    *,
    before=500,
    send=300,
    overlap=0,
    after=50,
    delay=lambda k: 0,
    extra=lambda k: 0,
    jitter=0,
    seed=1,
):
    """Iterations and bursts (times in ms).

    The computation after the communication's start takes ``send + overlap``: so much the communication may
    be late. ``delay`` makes the k-th one late, ``extra`` the k-th iteration longer, as a checkpoint does.
    """
    random, now, iterations, bursts = Random(seed), 1000.0, [], []
    for k in range(count):
        started = now
        begun = started + before + extra(k) + random.uniform(0, jitter)
        sent_from = begun + delay(k)
        sent = sent_from + send
        computed = begun + send + overlap
        now = max(sent, computed) + after + random.uniform(0, jitter)
        bursts.append(Burst(round(sent_from * MS), round(sent * MS), 10**6))
        iterations.append(Iteration(round(now * MS), round((now - started) * MS)))
    return iterations, bursts


def test_a_plain_job():
    timing = measure(*run(20), 10 * MS)
    assert timing == Timing(850 * MS, 0, 20, pytest.approx(0.95), 300 * MS, 0, False, 1)


def test_too_few_iterations_tell_nothing():
    iterations, bursts = run(LEAST - 1)
    assert measure(iterations, bursts, MS) is None
    assert measure([], [], 0) is None


def test_warm_up_compilation_checkpoints_and_evaluation_do_not_count():
    def extra(k):
        return {0: 60_000, 1: 9_000, 2: 4_000}.get(k, 20_000 if k % 10 == 9 else 7_000 if k % 15 == 14 else 0)

    timing = measure(*run(64, extra=extra, jitter=4), 10 * MS)
    assert timing.iteration_ns == pytest.approx(854 * MS, rel=0.01)
    assert timing.communication_ns == pytest.approx(300 * MS, rel=0.02)
    assert timing.spread_ns < 10 * MS
    assert timing.confidence > 0.97
    assert timing.slack_ns == 0


def test_without_bursts_or_with_coarse_ones_communication_is_not_told():
    iterations, bursts = run(10)
    for timing in (measure(iterations, [], MS), measure(iterations, bursts, 300 * MS)):
        assert timing.iteration_ns == 850 * MS
        assert (timing.communication_ns, timing.bursts, timing.slack_ns) == (None, 0, None)


def test_bursts_of_before_and_after_do_not_disturb():
    iterations, bursts = run(20)
    strange = [Burst(0, 10 * MS, 5), *bursts, Burst(10**12, 2 * 10**12, 5)]
    assert measure(iterations, strange, 10 * MS) == measure(iterations, bursts, 10 * MS)


def test_several_bursts_of_an_iteration_add_up():
    iterations, bursts = run(12)
    early = [Burst(burst.start_ns - 200 * MS, burst.start_ns - 150 * MS, 5) for burst in bursts]
    timing = measure(iterations, sorted(early + bursts), 10 * MS)
    assert (timing.communication_ns, timing.bursts) == (350 * MS, 2)
    # Now and then one more: so many at most, in most iterations.
    timing = measure(iterations, sorted(early[:7] + bursts), 10 * MS)
    assert timing.bursts == 2


def late(k):
    """Every third communication is late, by more and more."""
    return 0 if k % 3 else 25 * (k // 3)


def test_slack_is_what_late_communications_were_seen_to_cost_nothing():
    # 200 ms of computation overlap; delays go up to 150 ms: at least that is known.
    timing = measure(*run(21, overlap=200, delay=late), 5 * MS)
    assert timing.iteration_ns == 1050 * MS
    assert 100 * MS - 6 * MS <= timing.slack_ns <= 200 * MS
    assert not timing.slack_confirmed


def test_slack_is_confirmed_once_more_delay_made_iterations_longer():
    timing = measure(*run(64, overlap=200, delay=late), 5 * MS)
    assert 180 * MS <= timing.slack_ns <= 200 * MS
    assert timing.slack_confirmed


def test_no_slack_where_every_delay_makes_the_iteration_longer():
    timing = measure(*run(64, delay=lambda k: 150 * (k % 4 == 0)), 5 * MS)
    assert (timing.iteration_ns, timing.slack_ns) == (850 * MS, 0)


def test_slack_of_few_iterations_or_all_of_them_long_is_none():
    assert slack([(100, 5)] * (LEAST - 1), 105, 0) == (0, False)
    assert slack([(200, 5)] * 50, 105, 0) == (0, False)


@settings(max_examples=60)
@given(
    overlap=st.integers(0, 400),
    before=st.integers(200, 2000),
    send=st.integers(50, 800),
    longest=st.integers(0, 600),
    jitter=st.integers(0, 5),
    seed=st.integers(0, 2**16),
)
def test_slack_is_never_invented(overlap, before, send, longest, jitter, seed):
    random = Random(seed)
    delays = [random.uniform(0, longest) if random.random() < 0.3 else 0 for _ in range(64)]
    iterations, bursts = run(
        64, before=before, send=send, overlap=overlap, delay=delays.__getitem__, jitter=jitter, seed=seed
    )
    resolution = 10 + 2 * jitter
    timing = measure(iterations, bursts, resolution * MS)
    if timing.slack_ns is not None:
        length = before + send + overlap + 50
        # What an iteration of ordinary length may hide: up to TOLERANCE of it.
        assert timing.slack_ns <= (min(overlap, longest) + 0.06 * length) * MS
        ordinary = sorted(min(delay, overlap) for delay in delays if delay <= overlap)
        if timing.slack_confirmed and jitter == 0 and len(ordinary) > 40:
            assert timing.slack_ns >= (ordinary[-3] - resolution - 1) * MS


@settings(max_examples=60)
@given(
    before=st.integers(300, 3000),
    send=st.integers(50, 1500),
    pauses=st.sets(st.integers(0, 63), max_size=12),
    pause=st.integers(500, 100_000),
    jitter=st.integers(0, 10),
)
def test_iteration_and_communication_are_right_whatever_pauses_there_are(before, send, pauses, pause, jitter):
    iterations, bursts = run(
        64, before=before, send=send, extra=lambda k: pause * (k in pauses), jitter=jitter
    )
    timing = measure(iterations, bursts, 10 * MS)
    truth = before + send + 50 + jitter
    assert timing.iteration_ns == pytest.approx(truth * MS, rel=0.03)
    assert timing.communication_ns == pytest.approx(send * MS, rel=0.02)
    assert timing.confidence > 0.9
