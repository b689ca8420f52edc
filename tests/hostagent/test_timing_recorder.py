import pytest

from hostagent.flows.tracker import Sent
from hostagent.timing_recorder import KEEP, MEASURE_NS, Timings

MS = 1_000_000


@pytest.fixture
def timings():
    timings = Timings()
    timings.keep(["job1"])
    return timings


def play(timings, iterations=10, every=50, job="job1"):
    """Iterations of 1 s that send 1 MB in their last 200 ms; another job sends all the time."""
    for now in range(0, iterations * 1000 + every, every):
        phase, sent = now % 1000, {"another": Sent(1000, 0)}
        if phase > 800 or (phase == 0 and now):
            sent[job] = Sent(5000 * every, 0)
        if phase == 0 and now:
            timings.completed(job, now * MS, [1000 * MS])
        timings.looked(sent, now * MS)
    return now


def test_a_jobs_timing(timings):
    now = play(timings)
    measured = timings.measured(now * MS)["job1"]
    assert (measured.iteration_ns, measured.count) == (1000 * MS, 10)
    assert measured.communication_ns == pytest.approx(200 * MS, abs=50 * MS)
    # Measured when there is something new, and not more often than it is worth.
    assert timings.measured(now * MS + MEASURE_NS) == {}
    timings.completed("job1", 11_000 * MS, [1000 * MS])
    assert timings.measured(now * MS + MEASURE_NS + 1) == {}
    assert timings.measured(now * MS + 2 * MEASURE_NS)["job1"].count == 11


def test_a_burst_ends_when_its_last_byte_was_sent(timings):
    timings.looked({}, 0)
    timings.looked({"job1": Sent(5000, 30)}, 100 * MS)
    timings.looked({}, 200 * MS)
    (burst,) = timings._jobs["job1"]._finder.bursts
    assert (burst.end_ns, burst.bytes_sent) == (70 * MS, 5000)


def test_iterations_that_come_together_follow_one_another(timings):
    timings.completed("job1", 10_000 * MS, [1000 * MS, 2000 * MS, 3000 * MS])
    assert [tuple(iteration) for iteration in timings._jobs["job1"]._iterations] == [
        (5000 * MS, 1000 * MS),
        (7000 * MS, 2000 * MS),
        (10_000 * MS, 3000 * MS),
    ]
    timings.completed("job1", 11_000 * MS, [MS] * 100)
    assert len(timings._jobs["job1"]._iterations) == KEEP
    timings.completed("job2", 0, [MS])
    assert set(timings._jobs) == {"job1"}


def test_jobs_that_are_gone_are_forgotten(timings):
    now = play(timings)
    timings.keep(["job1", "job2"])
    assert set(timings.measured(now * MS)) == {"job1"}
    play(timings)
    timings.keep(["job2"])
    assert timings.measured(now * MS + MEASURE_NS) == {}
