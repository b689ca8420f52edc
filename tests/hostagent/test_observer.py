import os
import time

import pytest

from hostagent.config import AgentSection
from hostagent.interface import find
from hostagent.logs.tail import CHUNK
from hostagent.observer import IDLE_NS, LIVELY_NS, Observer
from hostagent.state import HostState

LINE = " iteration %8d/ 9000000 | elapsed time per iteration (ms): 0.1 | " + "x" * 100 + " |\n"


def config(interface="lo"):
    return AgentSection(host="h1", controllers=("127.0.0.1:9",), interface=interface)


class Watched:
    """An observer, its state, and what it has been told."""

    def __init__(self, interface="lo"):
        self.urgent = 0
        self.state = HostState(self._note)
        settings = config(interface)
        self.observer = Observer(settings, find(interface, ()), self.state)
        self.listings = 0
        connections = self.observer._diag.connections

        def counted():
            self.listings += 1
            return connections()

        self.observer._diag.connections = counted

    def _note(self):
        self.urgent += 1

    def look(self):
        now = time.monotonic_ns()
        self.observer.look(now)
        return now

    def job(self, id_):
        return next((job for job in self.state.report(None, 0, 0).jobs if job.job == id_), None)

    def flows(self):
        return list(self.state.report(None, 0, 0).flows)


@pytest.fixture
def watched():
    watched = Watched()
    yield watched
    watched.observer.close()


def test_a_large_log_is_worked_off_in_small_steps_that_are_due_soon(watched, trainers, tmp_path):
    trainers.start(rank=1)
    log = tmp_path / "train.log"
    log.write_text("".join(LINE % n for n in range(1, 6001)))
    assert log.stat().st_size > 3 * CHUNK
    seen = []
    deadline = time.monotonic() + 10
    while not seen or seen[-1] < 6000:
        assert time.monotonic() < deadline
        now = watched.look()
        job = watched.job(trainers.job)
        if job is not None and job.iterations and job.iterations not in seen:
            seen.append(job.iterations)
            if job.iterations < 6000:
                assert watched.observer.due_ns <= now + 20_000_000
    assert len(seen) >= 4


def test_growth_of_a_log_is_told_and_read_at_once(watched, trainers, tmp_path, eventually):
    trainers.start(rank=1, mode="ab")
    eventually(lambda: watched.look() and watched.job(trainers.job))
    watched.look()
    urgent = watched.urgent
    with (tmp_path / "train.log").open("a") as log:
        log.write(LINE % 1)
    watched.observer.look(0)  # nothing is due at time 0: only what the watcher tells is done
    assert watched.job(trainers.job).iterations == 1
    assert watched.urgent == urgent + 1


def test_connections_are_listed_when_there_is_reason_to(two_hosts, trainers, tmp_path):
    trainers.start("listen", two_hosts.b_addresses[0], 29_600, 0, 0, namespace=two_hosts.b, log="b.log")
    time.sleep(0.5)

    def inside():
        watched = Watched("data0")
        try:
            # Nothing goes on here: the kernel's table is walked now and then only.
            begun = time.monotonic_ns()
            while time.monotonic_ns() < begun + LIVELY_NS + 300_000_000:
                watched.look()
                time.sleep(0.01)
            calm, begun = watched.listings, time.monotonic_ns()
            while time.monotonic_ns() < begun + 2 * IDLE_NS:
                watched.look()
                time.sleep(0.01)
            assert watched.listings - calm <= 3

            trainers.start(
                "connect", two_hosts.b_addresses[0], 29_600, 0, 0, namespace=two_hosts.a, rank=1, log="a.log"
            )
            deadline = time.monotonic() + 10
            while not watched.flows():
                assert time.monotonic() < deadline
                watched.look()
                time.sleep(0.01)
            while watched.flows()[0].bytes_sent < 100_000:
                assert time.monotonic() < deadline
                watched.look()
                time.sleep(0.01)
            return [flow.job for flow in watched.flows()]
        finally:
            watched.observer.close()

    assert two_hosts.inside(two_hosts.a, inside) == [trainers.job]


def test_nothing_is_left_open():
    before = len(os.listdir("/proc/self/fd"))
    watched = Watched()
    watched.look()
    watched.observer.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_without_proc(tmp_path):
    with pytest.raises(OSError, match="thread-self"):
        Observer(config().model_copy(update={"proc": tmp_path}), find("lo", ()), HostState(lambda: None))
