"""Frames in batches into one queue."""

import socket
from collections import Counter

import pytest

from softswitch.queues import classid
from softswitch.sender import Sender


@pytest.fixture
def pair(veth):
    veth("a", "b")
    lost = Counter()
    sender = Sender("a", classid(3, 8), 1500, 64, lost, lambda reason: lost.update([reason]))
    ear = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    ear.setsockopt(socket.SOL_SOCKET, 33, 1 << 22)  # SO_RCVBUFFORCE
    ear.bind(("b", 0))
    ear.settimeout(2)
    yield sender, ear, lost
    sender.close()
    ear.close()


def frame(number, length):
    return b"\x02" * 12 + b"\x12\x34" + number.to_bytes(2, "big") + bytes(length - 16)


def test_nothing_leaves_before_flush_and_then_all_in_order(pair):
    sender, ear, _ = pair
    frames = [frame(number, 60 + 97 * (number % 15)) for number in range(20)]
    assert [sender.put(item) for item in frames] == [True] + [False] * 19
    ear.settimeout(0.1)
    with pytest.raises(TimeoutError):
        ear.recv(2000)
    ear.settimeout(2)
    sender.flush()
    assert [ear.recv(2000) for _ in frames] == frames
    sender.flush()
    assert sender.put(bytearray(frames[0]))


def test_a_full_batch_leaves_by_itself(pair):
    sender, ear, _ = pair
    frames = [frame(number, 60) for number in range(100)]
    for item in frames:
        sender.put(item)
    assert [ear.recv(2000) for _ in range(96)] == frames[:96]
    sender.flush()
    assert [ear.recv(2000) for _ in range(4)] == frames[96:]


def test_a_frame_that_cannot_be_sent_costs_only_itself(pair):
    sender, ear, lost = pair
    for item in (frame(1, 60), frame(2, 1517), frame(3, 60)):  # the second is longer than the interface takes
        sender.put(item)
    sender.flush()
    assert [ear.recv(2000)[15] for _ in range(2)] == [1, 3]
    assert lost == {"longer than the MTU": 1}
    assert not sender.put(frame(4, 9000))
    assert lost == {"longer than the MTU": 2}
