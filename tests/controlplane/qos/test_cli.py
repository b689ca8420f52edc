"""``leveller qos`` as a command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def run(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    leveller = [sys.executable, "-c", "from leveller.cli import main; main()"]
    command = [*leveller, "qos", "--config", str(path), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_each_target_speaks_its_own_words(path: Path) -> None:
    for options, word in (
        (("--target", "stratum"), "priority: PRIO_5"),
        (("--target", "bfrt", "--pfc-class", "4"), "5: (5, 4),  # level 2"),
        (("--target", "sonic", "--interfaces", "Ethernet8"), '"Ethernet8|5"'),
    ):
        done = run(path, "--switch", "S2", *options)
        assert (done.returncode, done.stderr) == (0, "")
        assert word in done.stdout


def test_headroom_per_port_and_class(path: Path) -> None:
    """The sum of test_headroom.py; three levels share a class, so a port needs it once."""
    done = run(path, "--switch", "S1", "--headroom", "--rate", "100", "--cable", "100", "--mtu", "9216")
    assert done.stderr == ""
    assert "port 132, class 3 (level 0, level 1, level 2): 81488 bytes\n" in done.stdout
    assert done.stdout.endswith("S1: 162976 bytes\n")


@pytest.mark.parametrize("options", [(), ("--headroom", "--target", "bfrt")])
def test_one_thing_at_a_time(path: Path, options: tuple[str, ...]) -> None:
    done = run(path, "--switch", "S1", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: leveller qos prints one thing: give --headroom, or --target: stratum, bfrt, sonic\n"
    )
