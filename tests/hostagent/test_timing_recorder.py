import pytest

from hostagent.flows.connection import TCP, FiveTuple
from hostagent.flows.kind import FlowKind
from hostagent.flows.tracker import Flow
from hostagent.timing_recorder import KEEP, MEASURE_NS, Timings

MS = 1_000_000


def key(port):
    return FiveTuple(b"\x0a\0\0\1", b"\x0a\0\0\2", TCP, port, 5000)


def flow(sent, *, job="job1", cookie=1, kind=FlowKind.COLLECTIVE, quiet_ms=0):
    return Flow(job, cookie, 0, sent, kind, quiet_ms)


def play(timings, iterations=10, every=50, job="job1", others=None):
    """Iterations of 1 s that send 1 MB in their last 200 ms."""
    sent = 0
    for now in range(0, iterations * 1000 + every, every):
        phase = now % 1000
        if phase > 800 or (phase == 0 and now):
            sent += 5000 * every
        if phase == 0 and now:
            timings.completed(job, now * MS, [1000 * MS])
        timings.looked({key(1): flow(sent, job=job), **(others or {})}, now * MS)
    return now


def test_a_jobs_timing():
    timings = Timings()
    now = play(timings)
    measured = timings.measured(now * MS)["job1"]
    assert (measured.iteration_ns, measured.count) == (1000 * MS, 10)
    assert measured.communication_ns == pytest.approx(200 * MS, abs=50 * MS)
    # Measured when there is something new, and not more often than it is worth.
    assert timings.measured(now * MS + MEASURE_NS) == {}
    timings.completed("job1", 11_000 * MS, [1000 * MS])
    assert timings.measured(now * MS + MEASURE_NS + 1) == {}
    assert timings.measured(now * MS + 2 * MEASURE_NS)["job1"].count == 11


def test_control_flows_and_other_jobs_do_not_count():
    timings, others = Timings(), {}
    others[key(2)] = flow(0, kind=FlowKind.CONTROL)
    others[key(3)] = flow(0, job="job2")
    for now in range(0, 5000, 50):  # both send all the time
        for other in others.values():
            other.bytes_sent += 1000
        timings.looked(others, now * MS)
    now = play(timings, others=others)
    assert timings.measured(now * MS)["job1"].communication_ns < 260 * MS


def test_a_five_tuples_next_use_is_no_growth():
    timings = Timings()
    timings.looked({key(1): flow(1000)}, 0)
    timings.looked({key(1): flow(5000, cookie=2)}, 100 * MS)
    timings.looked({}, 200 * MS)
    timings.looked({key(1): flow(6000, cookie=2)}, 300 * MS)
    timings.looked({}, 400 * MS)
    assert not timings._jobs["job1"]._finder.bursts


def test_iterations_that_come_together_follow_one_another():
    timings = Timings()
    timings.completed("job1", 10_000 * MS, [1000 * MS, 2000 * MS, 3000 * MS])
    assert [tuple(iteration) for iteration in timings._jobs["job1"]._iterations] == [
        (5000 * MS, 1000 * MS),
        (7000 * MS, 2000 * MS),
        (10_000 * MS, 3000 * MS),
    ]
    timings.completed("job1", 11_000 * MS, [MS] * 100)
    assert len(timings._jobs["job1"]._iterations) == KEEP
    timings.completed("job2", 0, [])
    assert set(timings._jobs) == {"job1"}


def test_jobs_that_are_gone_are_forgotten():
    timings = Timings()
    now = play(timings)
    timings.keep(["job2"])
    assert timings.measured(now * MS) == {}
