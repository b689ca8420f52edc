import os
import socket
import stat
import subprocess
import sys

import pytest

from hostagent.jobs.reports import MAX_READ, ReportSocket, Word

CALL = "import hostagent.report as r, os; r.iteration(5); r.iteration(6); print(os.getpid())"


@pytest.fixture
def listening(tmp_path):
    listening = ReportSocket(str(tmp_path / "agent.sock"))
    yield listening
    listening.close()


def call(code, path):
    environ = {**os.environ, "LEVELLER_AGENT_SOCKET": path, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )


def test_who_says_it_is_the_kernels_word(listening, tmp_path):
    pid = int(call(CALL, str(tmp_path / "agent.sock")).stdout)
    assert listening.read() == [Word(pid, "5", "5"), Word(pid, "5", "6")]
    assert listening.read() == []


@pytest.mark.parametrize(
    "data", [b"", b"2 1 1", b"1 1", b"1 x 2", b"1 1 2 3", b"\xff" * 200, b"1 " + b"9" * 60 + b" 1"]
)
def test_what_says_nothing_is_counted(listening, tmp_path, data):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        client.sendto(data, str(tmp_path / "agent.sock"))
    assert listening.read() == []
    assert listening.malformed == 1


def test_only_so_many_at_a_time(listening, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        client.setblocking(False)
        sent = 0
        try:
            while sent < 3 * MAX_READ:
                client.sendto(b"1 1 %d" % sent, str(tmp_path / "agent.sock"))
                sent += 1
        except BlockingIOError:
            pass
    got = 0
    while words := listening.read():
        assert len(words) <= MAX_READ
        got += len(words)
    assert got == sent


def test_every_tenant_may_write_and_a_dead_agents_socket_is_no_obstacle(tmp_path):
    path = tmp_path / "agent.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(path))
    first = ReportSocket(str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    with pytest.raises(OSError, match="in use"):
        ReportSocket(str(path))
    first.close()
    assert not path.exists()


def test_a_file_is_not_replaced(tmp_path):
    (tmp_path / "file").write_text("precious")
    with pytest.raises(OSError, match="in use"):
        ReportSocket(str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "precious"


def test_without_a_path_it_is_the_namespaces_own(two_hosts):
    def inside():
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM):
            listening = ReportSocket()
            try:
                code = ["ip", "netns", "exec", two_hosts.a, sys.executable, "-c", CALL]
                environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
                done = subprocess.run(code, env=environ, capture_output=True, text=True, check=True)
                return int(done.stdout), listening.read()
            finally:
                listening.close()

    pid, words = two_hosts.inside(two_hosts.a, inside)
    assert words == [Word(pid, "5", "5"), Word(pid, "5", "6")]
