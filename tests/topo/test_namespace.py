import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from leveller.errors import UserError
from topo import namespace

root = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")

START = "from topo import namespace; namespace.prepare()\n"


def run(code, output):
    with output.open("wb") as stream:
        return namespace.run([sys.executable, "-c", code], output=stream)


@root
def test_inside_is_pid_1_with_a_network_and_run_of_its_own(tmp_path):
    code = START + (
        "import os, pathlib\n"
        "links = sorted(p.name for p in pathlib.Path('/sys/class/net').iterdir())\n"
        "print(os.getpid(), namespace.inside(), links)\n"
        "print(namespace.DIRECTORY.is_dir(), os.getpriority(os.PRIO_PROCESS, 0))\n"
    )
    assert run(code, tmp_path / "out") == 0
    assert (tmp_path / "out").read_text() == "1 True ['lo']\nTrue -10\n"
    assert not namespace.inside()
    assert not namespace.DIRECTORY.exists()


@root
def test_exit_code_is_passed_on(tmp_path):
    assert run("raise SystemExit(7)", tmp_path / "out") == 7


SLEEPER = START + (
    "import subprocess, time\n"
    "subprocess.Popen(['sleep', '987'])\n"
    "try:\n"
    "    print('up', flush=True)\n"
    "    time.sleep(60)\n"
    "except KeyboardInterrupt:\n"
    "    print('cleaned up', flush=True)\n"
    "    raise SystemExit(130)\n"
)


def children(pid):
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed] + [below for child in listed for below in children(child)]


@root
@pytest.mark.parametrize(
    ("signum", "code", "said"),
    [
        (signal.SIGINT, 130, "up\ncleaned up\n"),
        (signal.SIGTERM, 130, "up\ncleaned up\n"),
        (signal.SIGKILL, -signal.SIGKILL, "up\n"),
    ],
)
def test_a_signal_ends_everything_inside(tmp_path, signum, code, said):
    outer = (
        "import sys; from topo import namespace\n"
        f"sys.exit(namespace.run([sys.executable, '-c', {SLEEPER!r}]))"
    )
    output = tmp_path / "out"
    with output.open("wb") as stream:
        process = subprocess.Popen([sys.executable, "-c", outer], stdout=stream)
    deadline = time.monotonic() + 15
    while output.read_text() != "up\n":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    family = children(process.pid)
    assert len(family) >= 3  # unshare, PID 1, and what that started
    process.send_signal(signum)
    assert process.wait(10) == code
    while any(Path(f"/proc/{pid}").exists() for pid in family):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert output.read_text() == said


def test_no_root_is_one_line(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UserError, match="the lab needs root"):
        namespace.run(["true"])
