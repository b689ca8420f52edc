import os
import resource
import signal
import subprocess
import sys
import time

import pytest
from scapy.utils import PcapReader

from leveller.errors import UserError
from softswitch.pcap import Capture

FRAMES = [bytes([n]) * (60 + n) for n in range(3)]


def read(path):
    with PcapReader(str(path)) as packets:
        return [(bytes(packet), float(packet.time)) for packet in packets]


def test_frames_are_there_at_once_by_way_and_time(tmp_path):
    before = time.time()
    capture = Capture(tmp_path, "s1-eth1")
    capture.received(FRAMES[:2])
    capture.sent(bytearray(FRAMES[2]))
    received = read(tmp_path / "s1-eth1_in.pcap")
    assert [frame for frame, _ in received] == FRAMES[:2]
    assert all(before - 0.001 < at < time.time() + 0.001 for _, at in received)
    assert [frame for frame, _ in read(tmp_path / "s1-eth1_out.pcap")] == FRAMES[2:]
    capture.close()


def test_a_directory_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(
        UserError, match=r"--pcap: s1's packets cannot be written into .*/none \(No such file"
    ):
        Capture(tmp_path / "none", "s1")


def test_a_full_disk_ends_the_capture_only(tmp_path):
    """The limit of a file's size stands for the disk's."""
    code = (
        "import pathlib, sys; from softswitch.pcap import Capture\n"
        f"capture = Capture(pathlib.Path({str(tmp_path)!r}), 'x')\n"
        "for _ in range(9): capture.sent(bytes(100))\n"
        "capture.received([bytes(100)])\n"
        "print('goes on')\n"
    )

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))

    done = subprocess.run(
        [sys.executable, "-B", "-c", code], capture_output=True, text=True, check=True, preexec_fn=limit
    )
    assert done.stdout.count("not captured any more") == 1
    assert done.stdout.endswith("goes on\n")
    assert os.path.getsize(tmp_path / "x_out.pcap") <= 300
