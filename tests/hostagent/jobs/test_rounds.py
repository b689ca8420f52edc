"""Turns of jobs, and what comes of the round when one does not come back."""

import sys
import threading

import pytest

from hostagent.jobs.job import TrackedJob
from hostagent.jobs.rounds import Round


@pytest.fixture
def jobs():
    return [TrackedJob(name, 1) for name in "abc"]


def test_each_has_its_turn_whatever_the_others_raise(jobs):
    seen = []

    def work(job):
        seen.append(job.id)
        if job.id == "b":
            raise ValueError("on purpose")

    turns = Round(jobs, work, sys.maxsize)
    turns.go()
    assert seen == ["a", "b", "c"]
    assert [job.id for job in turns.done] == ["a", "c"]
    assert [(job.id, str(error)) for job, error in turns.failed] == [("b", "on purpose")]
    assert not turns.left
    assert turns.abandon() is None


def test_after_its_time_the_rest_is_left(jobs):
    turns = Round(jobs, lambda job: None, 0)
    turns.go()
    assert [job.id for job in turns.done] == ["a"]
    assert [job.id for job in turns.left] == ["b", "c"]


def test_who_does_not_come_back_ends_it_and_nobody_after_it_has_a_turn_there(jobs):
    there, go_on, seen = threading.Event(), threading.Event(), []

    def work(job):
        seen.append(job.id)
        if job.id == "b":
            there.set()
            go_on.wait(10)

    turns = Round(jobs, work, sys.maxsize)
    thread = threading.Thread(target=turns.go)
    thread.start()
    assert there.wait(10)
    assert turns.abandon() is jobs[1]
    assert list(turns.left) == [jobs[2]]
    go_on.set()
    thread.join(10)
    assert seen == ["a", "b"]
    assert turns.done == jobs[:2]
