"""What ``leveller demo`` refuses before it makes anything."""

import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-P", "-m", "leveller", "demo"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--policy", "fastest"], "there is no policy 'fastest': choose from "),
        (["--policy", ""], "there is no policy ''"),
        (["--policy", "fair,fair"], "names a policy twice"),
        (["--scenario", "quartet"], "there is no scenario 'quartet'"),
        (["--scenario", "absent.toml"], "absent.toml does not exist"),
        (["--switch", "tofino"], "there is no switch 'tofino': choose one of softswitch, bmv2"),
        (["--scope", "planet"], "there is no scope 'planet'"),
        (["--seconds", "inf"], "--seconds inf"),
        (["--warmup", "nan"], "--warmup nan"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_code_2(arguments, words):
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_absent_bmv2_is_one_line(tmp_path):
    done = subprocess.run(
        [*COMMAND, "--switch", "bmv2"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(tmp_path)},
    )
    assert done.returncode == 2
    mend = "install bmv2 1.15.1 or newer, or use --switch softswitch"
    assert done.stderr == f"error: simple_switch_grpc is not on PATH: {mend}\n"
