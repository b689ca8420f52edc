import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.timing import Burst
from hostagent.timing_bursts import GAP_NS, BurstFinder

MS = 1_000_000


class Counter:
    """A counter of bytes that grows at ``rate`` (bytes/ms) in each (start, end) of ``bursts`` (ms)."""

    def __init__(self, bursts, rate=1000):
        self.bursts, self.rate = bursts, rate

    def at(self, ms):
        return round(sum(self.rate * (min(ms, end) - start) for start, end in self.bursts if start < ms))

    def quiet(self, ms):
        last = max((min(ms, end) for start, end in self.bursts if start < ms), default=0)
        return int(ms - last)  # the kernel tells whole milliseconds


def found(counter, until_ms, every_ms, first_ms=0):
    finder, before, now = BurstFinder(), counter.at(first_ms), first_ms
    finder.see(now * MS, 0)
    while now < until_ms:
        now += every_ms
        total = counter.at(now)
        finder.see(round(now * MS), total - before, counter.quiet(now) * MS)
        before = total
    return finder


def test_bursts_are_found_and_their_bytes_counted():
    finder = found(Counter([(1000, 1600), (3000, 3600)]), 5000, 50)
    assert [burst.bytes_sent for burst in finder.bursts] == [600_000, 600_000]
    for burst, start in zip(finder.bursts, (1000, 3000), strict=True):
        assert burst.start_ns == pytest.approx(start * MS, abs=2 * MS)
        assert burst.end_ns == pytest.approx((start + 600) * MS, abs=2 * MS)
    assert finder.resolution_ns == pytest.approx(50 * MS, rel=0.1)


def test_the_end_is_known_well_however_rare_the_looks_are():
    finder = found(Counter([(1010, 1660)]), 3000, 150)
    (burst,) = finder.bursts
    assert burst.end_ns == pytest.approx(1660 * MS, abs=MS)
    assert burst.start_ns == pytest.approx(1010 * MS, abs=2 * MS)


def test_short_pauses_do_not_end_a_burst_and_long_ones_do():
    assert len(found(Counter([(100, 200), (210, 300)]), 1000, 10).bursts) == 1
    assert len(found(Counter([(100, 200), (240, 300)]), 1000, 10).bursts) == 2
    assert GAP_NS == 20 * MS


def test_a_burst_that_goes_on_is_not_told_yet():
    assert not found(Counter([(100, 900)]), 800, 50).bursts


def test_a_clock_that_stands_still_and_a_first_look_tell_nothing():
    finder = BurstFinder()
    finder.see(100, 5000)
    finder.see(100, 5000)
    finder.see(90, 5000)
    assert (list(finder.bursts), finder.resolution_ns) == ([], 0)


@given(
    st.lists(st.tuples(st.integers(250, 3000), st.integers(200, 1500)), min_size=2, max_size=6),
    st.integers(5, 100),
    st.integers(0, 90),
)
def test_every_burst_is_found_within_the_time_between_two_looks(parts, every, first):
    bursts, now = [], 100
    for pause, length in parts:
        bursts.append((now + pause, now + pause + length))
        now += pause + length
    finder = found(Counter(bursts), now + 500, every, first)
    assert len(finder.bursts) == len(bursts)
    for burst, (start, end) in zip(finder.bursts, bursts, strict=True):
        assert abs(burst.end_ns - end * MS) <= 2 * MS
        assert abs(burst.start_ns - start * MS) <= every * MS
        assert burst.bytes_sent == (end - start) * 1000
    assert finder.resolution_ns <= max(every, 1) * MS + max(end - start for start, end in bursts) * MS


def test_only_the_last_bursts_are_kept():
    finder = BurstFinder()
    for number in range(2000):
        finder.see(2 * number * 100 * MS, 0)
        finder.see((2 * number + 1) * 100 * MS, 5, 90 * MS)
    assert len(finder.bursts) == finder.bursts.maxlen
    assert isinstance(finder.bursts[0], Burst)
