"""One line of Python in training code: it never waits, never raises, and needs nothing."""

import os
import socket
import subprocess
import sys
import time

import pytest

import hostagent.report
from hostagent.report import VARIABLE, iteration


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "agent.sock"))
    monkeypatch.setattr(hostagent.report, "_reporter", hostagent.report._Reporter())
    yield
    hostagent.report._reporter.close()


@pytest.fixture
def agent(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "agent.sock"))
        listening.setblocking(False)
        yield listening


def received(agent):
    got = []
    try:
        while True:
            got.append(agent.recv(100))
    except BlockingIOError:
        return got


def test_each_call_is_a_datagram_with_the_first_count_and_the_one_of_now(agent):
    for number in (11, 12, 13):
        iteration(number)
    assert received(agent) == [b"1 11 11", b"1 11 12", b"1 11 13"]


def test_no_agent_is_no_error_and_costs_nothing(tmp_path):
    begun = time.thread_time()
    for number in range(10_000):
        iteration(number)
    assert time.thread_time() - begun < 1
    assert not os.listdir(tmp_path)


def test_an_agent_that_comes_later_is_told_where_it_began(tmp_path, monkeypatch):
    iteration(1)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as late:
        late.bind(str(tmp_path / "agent.sock"))
        monkeypatch.setattr(hostagent.report._reporter, "_later_s", 0.0)  # a second later
        iteration(40)
        assert late.recv(100) == b"1 1 40"


def test_an_agent_that_does_not_read_is_not_waited_for(agent):
    begun = time.monotonic()
    for number in range(5_000):
        iteration(number)
    assert time.monotonic() - begun < 5
    assert len(received(agent)) < 5_000
    iteration(9_999)
    assert received(agent) == [b"1 0 9999"]


@pytest.mark.parametrize("nonsense", [None, "x", float("nan"), float("inf"), object(), [1]])
def test_nonsense_is_told_to_nobody(agent, nonsense):
    iteration(nonsense)
    assert received(agent) == []


def test_a_number_of_another_kind_is_one(agent):
    iteration(7.0)
    assert received(agent) == [b"1 7 7"]


def test_a_child_does_not_speak_through_its_parents_socket(agent):
    code = (
        "import os, hostagent.report as r\n"
        "r.iteration(1)\n"
        "first = r._reporter._socket\n"
        "if os.fork() == 0:\n"
        "    r.iteration(2); os._exit(r._reporter._socket is first)\n"
        "assert os.waitstatus_to_exitcode(os.wait()[1]) == 0\n"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], env=environ, check=True)
    assert received(agent) == [b"1 1 1", b"1 1 2"]


def test_it_needs_the_standard_library_only():
    code = (
        "import sys; import hostagent.report; "
        "print([name for name in sys.modules if name.partition('.')[0] not in sys.stdlib_module_names "
        "and not name.startswith(('hostagent', '_', '__')) and 'editable' not in name])"
    )
    environ = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_units_socket_goes_before_the_one_that_anybody_could_take(tmp_path, monkeypatch):
    monkeypatch.delenv("LEVELLER_AGENT_SOCKET", raising=False)
    monkeypatch.setattr(hostagent.report, "PATH", str(tmp_path / "unit.sock"))
    monkeypatch.setattr(hostagent.report, "ABSTRACT", f"\0leveller-test-{os.getpid()}")
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unit,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as anybody,
    ):
        anybody.bind(hostagent.report.ABSTRACT)
        iteration(1)
        assert anybody.recv(100) == b"1 1 1"
        hostagent.report._reporter.close()
        unit.bind(hostagent.report.PATH)
        iteration(2)
        assert unit.recv(100) == b"1 1 2"
