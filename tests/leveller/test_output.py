import os
import subprocess
import sys
from pathlib import Path

import pytest

AT_THE_END = "import leveller.cli as c; c.run(lambda: print('x'))"
AT_ONCE = """
import leveller.cli as c, leveller.output as o
def command():
    with o.standard_output():
        print('x', flush=True)
c.run(command)
"""
BUFFERED = {**os.environ, "PYTHONUNBUFFERED": ""}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("code", [AT_THE_END, AT_ONCE])
def test_a_full_disk_is_one_line(code):
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, "-c", code],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
            env=BUFFERED,
        )
    assert result.returncode == 2
    assert result.stderr == (
        "error: standard output cannot be written (No space left on device): "
        "make room there, or send it elsewhere\n"
    )


@pytest.mark.parametrize("code", [AT_THE_END, AT_ONCE])
def test_a_reader_that_has_gone_is_no_error(code):
    command = f'{{ sleep 0.3; {sys.executable} -c "{code}"; echo $? >&2; }} | true'
    result = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False, env=BUFFERED
    )
    assert result.stderr == "1\n"


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_program_without_standard_streams_ends_as_usual(closed):
    command = f"{sys.executable} -c 'from leveller.cli import main; main()' --version {closed}"
    assert subprocess.run(["sh", "-c", command], timeout=60, check=False).returncode == 0


def test_a_users_error_is_told_without_standard_output():
    command = f"{sys.executable} -c 'from leveller.cli import main; main()' sim run nofile --policy fair >&-"
    result = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert result.returncode == 2
    assert result.stderr == "error: nofile does not exist: give the path of a TOML file\n"
