import subprocess
import sys

import pytest

from leveller.errors import UserError
from topo import fabric, mininet

SWITCH = fabric.pair(1, 100_000_000, 1_000_000_000).switches["s1"]


def test_only_mininet_is_taken_from_the_systems_packages():
    taken = {
        name.split(".")[0]
        for name, module in sys.modules.items()
        if (getattr(module, "__file__", None) or "").startswith("/usr/lib/python3/dist-packages/")
    }
    assert taken == {"mininet"}


@pytest.mark.parametrize("kind", ["softswitch", "bmv2"])
def test_both_switches_have_one_command_line(kind, tmp_path, monkeypatch):
    program = tmp_path / mininet.SWITCHES[kind].program
    program.write_text("#!/bin/sh\necho 1.15.1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    node = mininet.SWITCHES[kind].__new__(mininet.SWITCHES[kind])
    node.name, node.switch, node.address = "s1", SWITCH, "127.0.0.1:50051"
    interface = {"softswitch": "s1-eth", "bmv2": "s1-p"}[kind]
    command = node.command()
    assert command[: command.index("--grpc-server-addr")] == [
        str(program),
        "-i",
        f"1@{interface}1",
        "-i",
        f"2@{interface}2",
        "--device-id",
        "1",
        "--log-level",
        "warn",
        "--log-console",
        "--no-p4",
        "--",
    ]
    rest = command[command.index("--grpc-server-addr") :]
    assert rest[:6] == [
        "--grpc-server-addr",
        "127.0.0.1:50051",
        "--cpu-port",
        "510",
        "--priority-queues",
        "8",
    ]
    own = {
        "softswitch": ["--port-rate", "1@100000000", "--port-rate", "2@1000000000", "--queue-depth", "1000"],
        "bmv2": [],
    }
    assert rest[6:] == own[kind]


def test_a_missing_program_says_how_to_get_it(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match=r"simple_switch_grpc is not on PATH: install bmv2 1\.15\.1 or newer"):
        mininet.Bmv2.executable()


@pytest.mark.parametrize(
    ("says", "refused"),
    [
        ("1.15.0-f745b1c5", "is version 1.15.0: install bmv2 1.15.1 or newer, or use --switch softswitch"),
        ("1.9.12", "is version 1.9.12: install"),
        ("usage: something else", "--version tells no version: install"),
        ("", "--version tells no version: install"),
        ("1.15.1", None),
        ("1.15.5-abc", None),
        ("1.16.0", None),
        ("2.0.0", None),
    ],
)
def test_bmv2_without_queues_the_right_way_round_is_refused(says, refused, tmp_path, monkeypatch):
    program = tmp_path / "simple_switch_grpc"
    program.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo '{says}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    if refused is None:
        assert mininet.Bmv2.executable() == str(program)
    else:
        with pytest.raises(UserError, match=refused):
            mininet.Bmv2.executable()


def test_level_marks_are_eight_and_none_marks_int():
    assert len(set(mininet.LEVEL_DSCP)) == mininet.QUEUES == 8
    assert 0x17 not in mininet.LEVEL_DSCP


def test_mininet_does_not_change_other_peoples_loggers():
    code = "import logging, topo.mininet; print(type(logging.getLogger('x')) is logging.Logger)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "True\n"
