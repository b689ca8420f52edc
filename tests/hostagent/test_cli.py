import array
import fcntl
import json
import os
import socket
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

LEVELLER = str(Path(sys.executable).with_name("leveller"))


def run(*arguments):
    return subprocess.run([LEVELLER, "agent", *arguments], capture_output=True, text=True, timeout=30)


def test_help_names_what_it_takes():
    done = run("--help")
    assert done.returncode == 0
    assert "--config" in done.stdout
    assert "--verbose" in done.stdout


def test_config_is_needed():
    done = run()
    assert done.returncode == 2
    assert "--config" in done.stderr


def test_read_shows_what_the_agent_makes_of_a_log(tmp_path):
    log = tmp_path / "train.log"
    lines = [f"iter {n}: loss 3.1, time 20.00ms" for n in range(30)]
    log.write_text("\n".join([*lines, "iter nan: loss 3.1, time 20.00ms", ""]))
    done = run("read", str(log), "--json")
    assert json.loads(done.stdout) == {
        "format": "nanogpt",
        "iterations": [[n, n] for n in range(1, 31)],
        "last": 30,
        "rejected": {"iteration is not a number": 1},
    }
    table = run("read", str(log)).stdout.splitlines()
    assert table[:3] == [
        "format      nanogpt",
        "iterations  30 lines that count, the last says 30",
        "rejected    iteration is not a number: 1",
    ]
    assert [line.split() for line in table[4:]] == [
        ["line", "iteration"],
        *([str(n), str(n)] for n in range(1, 11)),
        ["..", ".."],
        *([str(n), str(n)] for n in range(21, 31)),
    ]


def test_read_takes_a_users_own_format(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("done 1\ndone 2\n")
    assert json.loads(run("read", str(log), "--json").stdout)["format"] is None
    assert "no progress source" in run("read", str(log)).stdout
    done = run("read", str(log), "--json", "--pattern", r"done (?P<iteration>\d+)")
    assert json.loads(done.stdout) == {
        "format": "custom", "iterations": [[1, 1], [2, 2]], "last": 2, "rejected": {},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("read", "/nowhere/train.log"), "cannot be read"),
        (("read", "/dev/null", "--pattern", "x"), "--pattern: it needs one group"),
        (("read", "/dev/null", "--pattern", "(?P<iteration>(a+)+)"), "inside a repeat"),
    ],
)
def test_reads_mistakes_are_one_line(arguments, told):
    done = run(*arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("text", "told"), [(None, "does not exist"), ("[agent", "is not TOML")])
def test_unusable_file_is_one_line(tmp_path, text, told):
    path = tmp_path / "agent.toml"
    if text is not None:
        path.write_text(text)
    done = run("--config", str(path))
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_log_that_cannot_be_written_does_not_end_the_agent(tmp_path):
    """The disk is full."""
    if os.geteuid() != 0:
        pytest.skip("the agent needs CAP_NET_RAW")
    told = tmp_path / "report.sock"
    (tmp_path / "agent.toml").write_text(
        f'[agent]\nhost = "h1"\ncontrollers = ["unix:{tmp_path}/nobody"]\ninterface = "lo"\n'
        f'report_socket = "{told}"\n'
    )
    with open("/dev/full", "w") as full, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mine:
        agent = subprocess.Popen([LEVELLER, "agent", "--config", f"{tmp_path}/agent.toml"], stderr=full)
        try:
            while agent.poll() is None and not told.exists():
                time.sleep(0.02)
            mine.connect(str(told))
            mine.send(b"1 1 1")
            waiting = array.array("i", [1])
            while agent.poll() is None and waiting[0]:  # read: it has said that it started, and goes on
                fcntl.ioctl(mine, termios.TIOCOUTQ, waiting)
                time.sleep(0.02)
            assert agent.poll() is None
        finally:
            agent.kill()
            agent.wait()


def test_agent_does_not_load_what_it_does_not_need():
    code = (
        "import sys; import hostagent.agent; "
        "print({'numpy', 'scapy', 'networkx', 'finsy', 'controlplane', 'topo'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip() == "set()"
