"""What hangs, and what only takes long. A FIFO without a writer blocks whoever opens it, in the kernel."""

import os
import threading
import time

import pytest

from hostagent import lane as lane_module
from hostagent.lane import WAIT_S, HangingError, Lane


@pytest.fixture
def lane():
    lane = Lane("test")
    yield lane
    lane.close(lambda: None)


class Gate:
    """Opening it hangs until it is let go."""

    def __init__(self, path):
        self._path = path
        os.mkfifo(path)

    def open(self):
        descriptor = os.open(self._path, os.O_RDONLY)
        os.close(descriptor)
        return "came back"

    def let_go(self):
        os.close(os.open(self._path, os.O_WRONLY))


@pytest.fixture
def gate(tmp_path):
    return Gate(tmp_path / "gate")


def spin(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_what_comes_back_in_time_is_returned_or_raised_in_one_thread(lane):
    threads = {lane.run(threading.get_ident) for _ in range(3)}
    assert len(threads) == 1
    assert threads != {threading.get_ident()}
    with pytest.raises(ZeroDivisionError):
        lane.run(lambda: 1 // 0)
    assert lane.run(lambda: 7) == 7
    assert not lane.hangs


def test_what_hangs_is_waited_for_once_and_after_it_there_is_a_rest(lane, gate, monkeypatch):
    monkeypatch.setattr(lane_module, "REST_NS", 200_000_000)
    begun = time.monotonic()
    with pytest.raises(HangingError):
        lane.run(gate.open)
    assert WAIT_S <= time.monotonic() - begun < WAIT_S + 0.3
    begun = time.monotonic()
    for _ in range(100):
        with pytest.raises(HangingError):
            lane.run(lambda: 7)
    assert time.monotonic() - begun < WAIT_S
    gate.let_go()
    time.sleep(0.05)
    with pytest.raises(HangingError):
        lane.run(lambda: 7)
    time.sleep(0.2)
    assert lane.run(lambda: 7) == 7


def test_what_takes_the_processor_does_not_hang_however_long(lane):
    lane.run(lambda: spin(5 * WAIT_S))
    assert 5 * WAIT_S <= lane.cpu_ns / 1e9 < 10 * WAIT_S
    assert not lane.hangs


def test_what_takes_the_processor_beside_another_thread_does_not_hang(lane):
    over = threading.Event()

    def other():
        while not over.is_set():
            sum(range(1000))

    thread = threading.Thread(target=other)
    thread.start()
    try:
        lane.run(lambda: spin(4 * WAIT_S))
        with pytest.raises(HangingError):
            lane.run(lambda: time.sleep(5 * WAIT_S))
    finally:
        over.set()
        thread.join()


def test_what_hangs_at_its_end_is_seen_to_hang(gate, monkeypatch):
    monkeypatch.setattr(lane_module, "REST_NS", 0)
    lane = Lane("test")
    lane.run(lambda: None)
    lane.close(gate.open)
    assert lane.hangs
    gate.let_go()
    lane._thread.join(5)
    assert not lane.hangs


def test_where_no_thread_can_be_had_there_is_no_answer(lane, monkeypatch):
    def start(thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(HangingError):
            lane.run(lambda: 7)
    assert lane.run(lambda: 7) == 7


def test_the_end_waits_for_nothing_that_hangs_and_comes_after_it(gate):
    lane = Lane("test")
    told = []
    with pytest.raises(HangingError):
        lane.run(lambda: told.append(gate.open()))
    begun = time.monotonic()
    lane.close(lambda: told.append("closed"))
    assert time.monotonic() - begun < WAIT_S
    assert told == []
    gate.let_go()
    lane._thread.join(5)
    assert told == ["came back", "closed"]


def test_the_end_of_one_that_does_nothing_is_at_once():
    lane, told = Lane("test"), []
    lane.run(lambda: None)
    lane.close(lambda: told.append("closed"))
    assert told == ["closed"]
    lane._thread.join(5)
    assert not lane._thread.is_alive()
    Lane("never used").close(lambda: told.append("closed"))
    assert told == ["closed"] * 2
