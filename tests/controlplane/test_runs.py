"""When an id stands for another run, and who is asked about the one that was measured."""

from ipaddress import ip_address

import pytest

from controlplane.progress import JobProgress
from controlplane.runs import Run, Runs, Turnover, hosts_to_ask

SECOND = 10**9
SOURCES = {ip_address(f"10.0.{n}.1"): f"h{n}" for n in (1, 2, 3)}
A1, A2, A3 = SOURCES


def job(iterations=0, t0_s=0, *, tellers=("h1",), pinned=False, world_size=0, name="a"):
    return JobProgress(
        id=name,
        t0_ns=t0_s * SECOND,
        iterations=iterations,
        has_source=True,
        silent=False,
        heard_ns=0,
        fastest_ns=None,
        hosts=tellers,
        world_size=world_size,
        tellers=tellers,
        pinned=pinned,
    )


def turnover(strange=(), anew=(), altered=()):
    return Turnover(frozenset(strange), frozenset(anew), frozenset(altered))


def follow(*runs, earlier=None):
    """Return what is told of the last of ``runs`` of job a."""
    followed = Runs(earlier or {})
    for run in runs:
        told = followed.follow({"a": run})
    return told


def test_who_comes_or_goes_is_strange_once():
    runs = Runs({})
    assert runs.follow({"a": job(5), "b": job(5, name="b")}) == turnover(strange={"a", "b"})
    assert runs.follow({"a": job(6), "b": job(6, name="b")}) == turnover()
    assert runs.follow({"a": job(7)}) == turnover(strange={"b"})
    assert runs.follow({"a": job(8)}) == turnover()


@pytest.mark.parametrize(
    ("after", "anew"),
    [
        (job(0, t0_s=60), True),
        (job(50, t0_s=60), False),  # it tells of no fewer: its start was told wrongly before
        (job(0, t0_s=5), False),  # the same start, by clocks that differ; it went back to a checkpoint
        (job(0, t0_s=6), True),
        (job(0, t0_s=60, tellers=("h2",)), False),  # another host's word
        (job(0, t0_s=60, tellers=("h1", "h2")), True),
    ],
)
def test_fewer_iterations_since_a_later_start_are_a_new_run_in_the_same_mouth(after, anew):
    assert follow(job(50), after) == turnover(anew={"a"} if anew else ())


def test_a_run_from_before_the_controller_was_started_is_compared_with_once():
    earlier = {"a": Run(0, 50)}
    assert follow(job(0, t0_s=60), earlier=earlier) == turnover(strange={"a"}, anew={"a"})
    assert follow(job(60), earlier=earlier) == turnover(strange={"a"})
    runs = Runs(earlier)
    runs.follow({"a": job(60)})
    runs.follow({})
    assert runs.follow({"a": job(0, t0_s=90)}) == turnover(strange={"a"})


@pytest.mark.parametrize(
    ("before", "after", "altered"),
    [
        (job(5, pinned=True, world_size=2), job(6, pinned=True, world_size=8), True),
        (job(5, pinned=True, world_size=2), job(6, pinned=True, world_size=0), False),
        (job(5, pinned=True, world_size=0), job(6, pinned=True, world_size=8), False),
        (job(5, pinned=True), job(6, tellers=("h2",)), True),
        # One that nobody was asked about has not been measured yet.
        (job(5, world_size=2), job(6, world_size=8), False),
    ],
)
def test_another_size_and_other_hosts_alter_a_job_that_was_measured(before, after, altered):
    assert follow(before, after) == turnover(altered={"a"} if altered else ())


def test_a_new_run_in_another_size_is_new_and_no_more():
    before, after = job(50, pinned=True, world_size=2), job(0, t0_s=60, pinned=True, world_size=8)
    assert follow(before, after) == turnover(anew={"a"})


EVERYBODY = job(tellers=("h1", "h2", "h3"))


@pytest.mark.parametrize(
    ("asked", "sent", "expected"),
    [
        (set(), {}, {"h1", "h2", "h3"}),  # nobody was counted: nothing speaks against any
        (set(), {A1: 0, A2: 0}, {"h1", "h2", "h3"}),
        (set(), {A1: 100, A2: 90}, {"h1", "h2"}),
        (set(), {A1: 100, A2: 10, A3: 11}, {"h1", "h3"}),
        (set(), {ip_address("10.0.7.1"): 1000, A2: 10}, {"h2"}),  # whose that is, nobody tells
        ({"h3"}, {A1: 100}, {"h3"}),
        ({"h3", "h7"}, {A1: 100}, {"h3"}),
        ({"h7"}, {A1: 100}, {"h1"}),
    ],
)
def test_those_asked_before_go_on_and_else_who_tells_of_it_and_sends_like_it(asked, sent, expected):
    assert hosts_to_ask(EVERYBODY, asked, sent, SOURCES) == expected


def test_what_a_host_sends_from_several_addresses_is_one_senders():
    sources = {A1: "h1", A2: "h1", A3: "h2"}
    assert hosts_to_ask(EVERYBODY, set(), {A1: 60, A2: 60, A3: 11}, sources) == {"h1"}


def test_a_sender_that_does_not_tell_of_the_job_sets_the_measure_too():
    told_of = job(tellers=("h1",))
    assert hosts_to_ask(told_of, set(), {A1: 5, A2: 1000}, SOURCES) == {"h1"}
    assert hosts_to_ask(job(tellers=("h1", "h3")), set(), {A1: 5, A2: 1000, A3: 200}, SOURCES) == {"h3"}
