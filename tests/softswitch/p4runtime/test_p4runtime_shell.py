"""p4runtime-shell, which wants a protobuf of 2022 and so a virtual environment of its own."""

import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PYTHON = HERE.parents[2] / ".venv-p4runtime-shell" / "bin" / "python"


def test_a_session(switch):
    if not PYTHON.exists():
        pytest.skip("p4runtime-shell is not installed in .venv-p4runtime-shell")
    running = switch("--device-id", "1", "--no-p4")
    session = subprocess.run(
        [PYTHON, HERE / "shell_session.py", running.address, HERE / "programs" / "features"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert session.returncode == 0, session.stderr
    assert session.stdout.splitlines() == [
        "entries 1",
        "port 03",
        "priority 5",
        "groups 1",
        "packets 7",
        "multicast groups 1",
        "clone sessions 1",
        "packet-in [12]",
        "entries 0",
        "version 1.5.0",
    ]
