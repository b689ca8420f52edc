"""R, merging over hosts, silence, endings, and everything that cannot be true."""

import pytest

from controlplane.progress import KEEP_OVER, Iteration, Over, Progress, rate
from controlplane.reports import HostReport, JobReport, Timing

SECOND = 10**9


def job(name="a", iterations=0, started=0, last=0, durations=(), *, running=True, source=True):
    return JobReport(name, running, source, iterations, started, last, tuple(durations))


def report(now_s, *jobs, full=False):
    return HostReport(round(now_s * SECOND), full, jobs)


@pytest.fixture
def progress():
    return Progress(silent_after_ns=3 * SECOND, forget_after_ns=60 * SECOND)


def only(progress, now_s):
    (state,) = progress.jobs(round(now_s * SECOND)).values()
    return state


@pytest.mark.parametrize(
    ("iterations", "ideal", "elapsed", "expected"),
    [(0, 5, 100, 0.0), (10, 5, 100, 0.5), (30, 5, 100, 1.0), (0, 5, 0, 0.0), (1, 5, 0, 1.0), (1, 5, -9, 1.0)],
)
def test_rate(iterations, ideal, elapsed, expected):
    assert rate(iterations, ideal, elapsed) == expected


def test_t0_is_the_start_on_the_controllers_clock(progress):
    # The agent's clock says 1,000 s at arrival, and the job started at 940 on it: 60 s ago.
    progress.observe("h1", report(1000, job(iterations=30, started=940 * SECOND)), 100 * SECOND)
    state = only(progress, 100)
    assert state.t0_ns == 40 * SECOND
    assert state.rate(SECOND, 100 * SECOND, new=False) == 0.5
    assert state.rate(SECOND, 101 * SECOND, new=False) == 30 / 61


def test_what_the_log_does_not_tell_yet_counts_as_estimated(progress):
    told = job(iterations=100)._replace(estimated=20, estimated_error=3, log_format="megatron")
    progress.observe("h1", report(240, told), 240 * SECOND)
    state = only(progress, 240)
    assert (state.iterations, state.estimated, state.estimated_error, state.log_format) == (
        100,
        20,
        3,
        "megatron",
    )
    assert state.rate(SECOND, 240 * SECOND, new=False) == 0.5


def test_an_estimate_beyond_belief_is_refused(progress):
    seen = progress.observe("h1", report(1, job()._replace(estimated=10**12)), SECOND)
    assert seen.refused == ["job 'a': 1000000000000 iterations in 1000000000 ns"]


def test_no_progress_source_is_never_r_0_but_one_that_may_yet_be_is(progress):
    none = job(source=False)._replace(source="none")
    progress.observe("h1", report(10, none), 10 * SECOND)
    state = only(progress, 10)
    assert (state.no_source, state.rate(None, 10 * SECOND, new=True)) == (True, 1.0)
    progress.observe("h2", report(10, job(source=False)._replace(source="stdout")), 10 * SECOND)
    state = only(progress, 10)
    assert (state.no_source, state.rate(None, 10 * SECOND, new=True)) == (False, 0.0)


def test_how_the_last_jobs_ended_is_remembered(progress):
    for host in ("h1", "h2"):
        progress.observe(host, report(10, job(iterations=5), job("b")), 10 * SECOND)
    progress.observe("h1", report(20, job(iterations=7, running=False)), 20 * SECOND)
    assert progress.over == {"a": Over("h1", 7, False, 20 * SECOND)}
    progress.observe("h2", report(21, job(iterations=6, running=False)._replace(died=True)), 21 * SECOND)
    assert progress.over == {"a": Over("h2", 7, True, 21 * SECOND)}
    progress.observe("h1", report(22, job(iterations=1, started=21 * SECOND)), 22 * SECOND)
    assert progress.over == {}


def test_jobs_that_are_over_are_remembered_within_bounds(progress):
    for number in range(2 * KEEP_OVER):
        progress.observe("h1", report(10 + number, job(f"j{number}")), (10 + number) * SECOND)
        progress.observe("h1", report(10 + number, job(f"j{number}", running=False)), (10 + number) * SECOND)
    assert list(progress.over) == [f"j{number}" for number in range(KEEP_OVER, 2 * KEEP_OVER)]


def test_a_job_that_hangs_is_there(progress):
    progress.observe("h1", report(10, job(iterations=5)._replace(hung=True)), 10 * SECOND)
    assert only(progress, 10).hung


def test_later_arrivals_do_not_move_t0(progress):
    progress.observe("h1", report(10, job()), 10 * SECOND)
    progress.observe("h1", report(11, job(iterations=1)), 14 * SECOND)  # delayed by 3 s
    assert only(progress, 14).t0_ns == 0


def test_a_job_is_merged_over_its_hosts(progress):
    progress.observe("h2", report(10, job(iterations=0, started=2 * SECOND, source=False)), 10 * SECOND)
    progress.observe("h1", report(10, job(iterations=7, started=3 * SECOND)), 10 * SECOND)
    state = only(progress, 10)
    assert (state.t0_ns, state.iterations, state.hosts) == (2 * SECOND, 7, ("h1", "h2"))


def test_iterations_are_stamped_and_come_from_one_host_only(progress):
    progress.observe("h1", report(10, job()), 110 * SECOND)
    progress.observe("h2", report(50, job(started=40 * SECOND)), 110 * SECOND)
    times = (SECOND, 2 * SECOND)
    seen = progress.observe(
        "h1", report(13, job(iterations=2, last=12 * SECOND, durations=times)), 113 * SECOND
    )
    assert seen.iterations == {"a": [Iteration(110 * SECOND, SECOND), Iteration(112 * SECOND, 2 * SECOND)]}
    other = job(iterations=2, started=40 * SECOND, last=52 * SECOND, durations=times)
    assert progress.observe("h2", report(53, other), 113 * SECOND).iterations == {}


def test_the_other_host_takes_over_when_the_first_is_silent(progress):
    progress.observe("h1", report(10, job()), 10 * SECOND)
    progress.observe("h2", report(10, job()), 10 * SECOND)
    seen = progress.observe("h2", report(20, job(iterations=1, last=SECOND, durations=[SECOND])), 20 * SECOND)
    assert seen.iterations == {"a": [Iteration(SECOND, SECOND)]}


def test_the_fastest_iteration_stands_for_t_ideal(progress):
    times = (2 * SECOND, SECOND, 3 * SECOND)
    progress.observe("h1", report(12, job(iterations=3, last=12 * SECOND, durations=times)), 12 * SECOND)
    assert only(progress, 12).fastest_ns == SECOND
    assert only(progress, 12).rate(None, 12 * SECOND, new=False) == 0.25


def test_a_job_of_which_nothing_can_be_told_goes_last_and_one_that_begins_goes_first(progress):
    progress.observe(
        "h1", report(10, job("begins"), job("hidden", source=False), job("late", 3)), 10 * SECOND
    )
    rates = {
        name: state.rate(None, 10 * SECOND, new=False) for name, state in progress.jobs(10 * SECOND).items()
    }
    assert rates == {"begins": 0.0, "hidden": 1.0, "late": 1.0}
    assert progress.jobs(10 * SECOND)["hidden"].rate(None, 10 * SECOND, new=True) == 0.0
    assert progress.jobs(10 * SECOND)["late"].rate(None, 10 * SECOND, new=True) == 1.0


def test_r_of_a_silent_job_stands_still(progress):
    progress.observe("h1", report(10, job(iterations=5)), 10 * SECOND)
    assert not only(progress, 13).silent
    assert only(progress, 13).rate(SECOND, 13 * SECOND, new=False) == 5 / 13
    assert only(progress, 14).silent
    assert only(progress, 14).rate(SECOND, 14 * SECOND, new=False) == 0.5


def test_a_job_is_not_silent_while_one_host_with_its_log_reports(progress):
    progress.observe("h1", report(10, job(iterations=5)), 10 * SECOND)
    progress.observe("h2", report(19, job(iterations=5)), 19 * SECOND)
    assert not only(progress, 20).silent


def test_a_host_that_is_silent_for_long_is_forgotten(progress):
    progress.observe("h1", report(10, job()), 10 * SECOND)
    progress.observe("h2", report(10, job("b")), 40 * SECOND)
    assert progress.forgotten(70 * SECOND) == []
    assert progress.forgotten(71 * SECOND) == ["h1"]
    assert list(progress.jobs(71 * SECOND)) == ["b"]


def test_a_job_ends_when_its_last_host_says_so(progress):
    progress.observe("h1", report(10, job()), 10 * SECOND)
    progress.observe("h2", report(10, job()), 10 * SECOND)
    assert progress.observe("h1", report(11, job(running=False)), 11 * SECOND).news
    assert only(progress, 11).hosts == ("h2",)
    progress.observe("h2", report(11, job(running=False)), 11 * SECOND)
    assert progress.jobs(11 * SECOND) == {}


def test_a_full_report_replaces_what_the_host_said(progress):
    progress.observe("h1", report(10, job("a"), job("b")), 10 * SECOND)
    assert progress.observe("h1", report(11, job("b"), full=True), 11 * SECOND).news
    assert list(progress.jobs(11 * SECOND)) == ["b"]


def test_a_job_that_starts_anew_has_a_new_t0(progress):
    progress.observe("h1", report(100, job(iterations=90)), 100 * SECOND)
    progress.observe("h1", report(110, job(iterations=2, started=105 * SECOND)), 110 * SECOND)
    state = only(progress, 110)
    assert (state.t0_ns, state.iterations) == (105 * SECOND, 2)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (job(iterations=10**18), "1000000000000000000 iterations in"),
        (job(iterations=2**64 - 1), "iterations in"),
        (job(iterations=6, started=101 * SECOND), "started in the future"),
        (job(iterations=6, last=101 * SECOND), "in the future"),
        (job(iterations=6, started=3 * SECOND, last=2 * SECOND), "before it started"),
        (job(iterations=6, last=90 * SECOND, durations=[0]), "took no time"),
        (job(iterations=6, last=90 * SECOND, durations=[200 * SECOND]), "longer than it has run"),
    ],
)
def test_what_cannot_be_true_changes_nothing(progress, bad, reason):
    progress.observe("h1", report(99, job(iterations=5)), 99 * SECOND)
    before = only(progress, 100)
    seen = progress.observe("h1", report(100, bad), 99 * SECOND)
    assert len(seen.refused) == 1
    assert reason in seen.refused[0]
    assert seen.believed
    assert seen.iterations == {}
    assert only(progress, 100) == before


def test_a_rollback_takes_iterations_away(progress):
    progress.observe("h1", report(99, job(iterations=5)), 99 * SECOND)
    assert progress.observe("h1", report(100, job(iterations=3)), 100 * SECOND).refused == []
    assert only(progress, 100).iterations == 3


def test_a_start_that_goes_back_is_not_believed(progress):
    progress.observe("h1", report(100, job(iterations=5, started=50 * SECOND)), 100 * SECOND)
    seen = progress.observe("h1", report(101, job(iterations=6, started=10 * SECOND)), 101 * SECOND)
    assert seen.refused == ["job 'a': its start went back"]
    assert only(progress, 101).t0_ns == 50 * SECOND


def test_a_report_from_the_past_is_not_believed_at_all(progress):
    progress.observe("h1", report(100, job(iterations=5)), 100 * SECOND)
    seen = progress.observe("h1", report(99, job("b")), 101 * SECOND)
    assert not seen.believed
    assert list(progress.jobs(101 * SECOND)) == ["a"]


def test_a_job_older_than_any_is_not_believed(progress):
    seen = progress.observe("h1", report(10**10, job()), 0)
    assert "has run for" in seen.refused[0]
    assert progress.jobs(0) == {}


def test_one_host_cannot_fill_the_memory_with_jobs(progress):
    for number in range(300):
        progress.observe("h1", report(10, job(str(number))), 10 * SECOND)
    assert len(progress.jobs(10 * SECOND)) == 256


def test_brief_flows_add_up_over_hosts_and_communicators_do_not(progress):
    for host, flows, communicators in (("h1", 3, 2), ("h2", 4, 1)):
        told = job()._replace(brief_flows=flows, communicators=communicators)
        progress.observe(host, report(1, told, full=True), SECOND)
    assert (only(progress, 1).brief_flows, only(progress, 1).communicators) == (7, 2)


def test_timing_is_of_the_first_host_with_a_log_that_has_one(progress):
    timing, other = Timing(SECOND, 0, 20, 0.9), Timing(2 * SECOND, 0, 20, 0.9)
    progress.observe("h1", report(1, job(source=False)._replace(timing=other), full=True), SECOND)
    assert only(progress, 1).timing is None
    progress.observe("h3", report(1, job()._replace(timing=other), full=True), SECOND)
    progress.observe("h2", report(1, job()._replace(timing=timing), full=True), SECOND)
    assert only(progress, 1).timing == timing


def test_a_start_before_the_host_was_last_heard_without_the_job_is_not_believed(progress):
    progress.observe("h1", report(1000, full=True), 1000 * SECOND)
    progress.observe("h1", report(1001, job(iterations=1, started=200 * SECOND)), 1001 * SECOND)
    assert only(progress, 1001).t0_ns == 995 * SECOND
    # Nor does it help to begin anew with a full report, or with other numbers.
    again = report(1002, job(iterations=1, started=100 * SECOND), full=True)
    progress.observe("h1", again, 1002 * SECOND)
    assert only(progress, 1002).t0_ns == 995 * SECOND
    progress.observe("h1", report(1003, full=True), 1003 * SECOND)
    progress.observe("h1", again, 1004 * SECOND)
    assert only(progress, 1004).t0_ns == 995 * SECOND


def test_a_job_that_is_restarted_soon_goes_on_from_its_old_start(progress):
    progress.observe("h1", report(1000, job(iterations=500, started=400 * SECOND)), 1000 * SECOND)
    progress.observe("h1", report(1001, job(iterations=500, running=False)), 1001 * SECOND)
    progress.observe("h1", report(1090, job(iterations=480, started=400 * SECOND)), 1090 * SECOND)
    assert only(progress, 1090).t0_ns == 400 * SECOND
    progress.observe("h1", report(1100, job(running=False)), 1100 * SECOND)
    for now_s in (1101, 1260):
        progress.observe("h1", report(now_s), now_s * SECOND)
    progress.observe("h1", report(1261, job(iterations=480, started=400 * SECOND)), 1261 * SECOND)
    assert only(progress, 1261).t0_ns == 1255 * SECOND


def test_iterations_that_the_switches_counted_are_added(progress):
    progress.observe("h1", report(100, job(iterations=30)), 100 * SECOND)
    state = only(progress, 100)
    assert state.rate(SECOND, 100 * SECOND, new=False, untold=20) == 0.5
    assert state.done == 30


def test_a_job_that_is_pinned_is_what_its_hosts_say_while_one_of_them_has_its_log(progress):
    progress.observe(
        "h1",
        report(10, job(iterations=5, started=3 * SECOND, last=9 * SECOND, durations=[SECOND])),
        10 * SECOND,
    )
    progress.pin("a", ["h1"])
    stranger = job(iterations=400_000, last=99 * SECOND, durations=[SECOND // 1000])
    observed = progress.observe("h0", report(100, stranger), 11 * SECOND)
    assert observed.iterations == {}
    state = only(progress, 11)
    assert (state.iterations, state.t0_ns, state.fastest_ns) == (5, 3 * SECOND, SECOND)
    assert (state.hosts, state.tellers, state.pinned) == (("h0", "h1"), ("h1",), True)
    progress.observe("h1", report(12, job(running=False)), 12 * SECOND)
    state = only(progress, 12)
    assert (state.iterations, state.tellers, state.pinned) == (400_000, ("h0",), False)
    assert progress.pins("a") == {"h1"}
    progress.observe("h0", report(101, job(running=False)), 12 * SECOND)
    assert progress.jobs(12 * SECOND) == {}
    assert progress.pins("a") == frozenset()  # the next run of that id is another's, maybe


def test_who_is_not_pinned_any_more_is_anybodys(progress):
    progress.pin("a", ["h1"])
    progress.pin("a", [])
    assert progress.pins("a") == frozenset()
