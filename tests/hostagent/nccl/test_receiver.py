"""Who is believed: the kernel says which process a datagram comes from."""

import contextlib
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from hostagent.jobs.identity import Rank
from hostagent.jobs.processes import TrainingProcess
from hostagent.nccl.messages import End
from hostagent.nccl.receiver import MOST, Receiver, Told
from leveller.errors import UserError
from tests.hostagent.nccl.test_messages import HEADER, datagram

SEND = """
import os, socket, sys, time
if len(sys.argv) > 3:
    os.setresuid(int(sys.argv[3]), int(sys.argv[3]), int(sys.argv[3]))
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(bytes.fromhex(sys.argv[2]), sys.argv[1])
print("sent", flush=True)
time.sleep(60)
"""


def process(pid, job="job1"):
    return {pid: TrainingProcess(pid, Rank(job, 0, 2), 1, 1)}


@pytest.fixture
def path():
    """Where every user may send to: pytest's own directories are its user's only."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory) / "nccl.sock"


@pytest.fixture
def receiver(path):
    receiver = Receiver(path, "/proc")
    yield receiver
    receiver.close()


def send(path, data):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(data, str(path))


def test_a_training_process_is_believed(receiver, path):
    send(path, datagram(4))
    assert receiver.drain(process(os.getpid())) == [Told(os.getpid(), "job1", End(HEADER))]
    assert not receiver.refused


def test_others_are_not(receiver, path):
    send(path, datagram(4))
    assert receiver.drain(process(os.getppid())) == []
    assert receiver.refused == {"not a training process": 1}


def test_another_process_speaks_for_itself_only(receiver, path):
    """It says nothing of its job: that is known from its pid, which the kernel tells."""
    child = subprocess.Popen(
        [sys.executable, "-c", SEND, str(path), datagram(4).hex()], stdout=subprocess.PIPE
    )
    try:
        child.stdout.readline()
        processes = process(os.getpid(), "mine") | process(child.pid, "theirs")
        assert [told.job for told in receiver.drain(processes)] == ["theirs"]
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="changing the user needs root")
def test_every_user_may_send_and_a_pids_next_user_is_not_believed(receiver, path, monkeypatch):
    child = subprocess.Popen(
        [sys.executable, "-c", SEND, str(path), datagram(4).hex(), "65534"], stdout=subprocess.PIPE
    )
    try:
        child.stdout.readline()
        assert [told.pid for told in receiver.drain(process(child.pid))] == [child.pid]
        send(path, datagram(4))
        monkeypatch.setattr("hostagent.nccl.receiver._real_user", lambda _: 65534)
        assert receiver.drain(process(os.getpid())) == []
        assert receiver.refused == {"not a training process": 1}
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def test_nonsense_is_counted_by_reason(receiver, path):
    for data in (b"", b"x" * 40, datagram(9), b"y" * 10_000):
        send(path, data)
    assert receiver.drain(process(os.getpid())) == []
    assert sum(receiver.refused.values()) == 4
    assert receiver.refused["too long"] == 1


def test_a_flood_is_read_in_pieces(receiver, path):
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    with sender, contextlib.suppress(BlockingIOError):  # the kernel keeps so many, and no more
        for _ in range(100_000):
            sender.sendto(datagram(4), str(path))
    assert 0 < len(receiver.drain(process(os.getpid()))) <= MOST


def test_descriptors_that_are_sent_along_are_closed(receiver, path):
    before = len(os.listdir("/proc/self/fd"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(str(path))
        socket.send_fds(sender, [datagram(4)], [0, 1, 2])
    assert len(receiver.drain(process(os.getpid()))) == 1
    assert len(os.listdir("/proc/self/fd")) == before


def test_its_path_comes_and_goes(path):
    receiver = Receiver(path, "/proc")
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    with pytest.raises(UserError, match="in use"):
        Receiver(path, "/proc")
    receiver.close()
    assert not path.exists()


def test_what_a_dead_agent_left_is_replaced(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(path))
    receiver = Receiver(path, "/proc")
    send(path, datagram(4))
    assert len(receiver.drain(process(os.getpid()))) == 1
    receiver.close()


def test_a_file_in_its_place_stays(path):
    path.write_text("precious")
    with pytest.raises(UserError, match=r"nccl_socket = .*nccl\.sock cannot be opened"):
        Receiver(path, "/proc")
    assert path.read_text() == "precious"
    with pytest.raises(UserError, match="directory that the agent may write to"):
        Receiver(path / "below", "/proc")


def test_it_never_waits(receiver):
    begun = time.monotonic()
    assert receiver.drain({}) == []
    assert time.monotonic() - begun < 1
