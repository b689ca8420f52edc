import subprocess
import sys

import pytest

from leveller.errors import UserError
from softswitch.logs import Destination, RotatedFile

CODE = """
import logging, structlog
from softswitch.logs import Destination, configure
configure("info", Destination({arguments}))
structlog.get_logger().info("from one", port=3)
logging.getLogger("x").warning("from the other")
structlog.get_logger().debug("too fine")
"""


def logged(arguments):
    code = CODE.format(arguments=arguments)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


def test_stderr_unless_stdout_is_asked_for():
    done = logged("")
    assert done.stdout == ""
    assert [word in done.stderr for word in ("from one", "port=3", "from the other", "fine")] == [
        True, True, True, False,
    ]  # fmt: skip
    done = logged("console=True")
    assert done.stderr == ""
    assert "from one" in done.stdout


def test_a_file_has_both_kinds_of_lines(tmp_path):
    done = logged(f"file={str(tmp_path / 'switch')!r}")
    assert done.stdout == done.stderr == ""
    first, second = (tmp_path / "switch.txt").read_text().splitlines()
    assert "from one" in first
    assert second == "WARNING x: from the other"


def test_a_file_is_put_away_before_it_becomes_too_large(tmp_path):
    log = RotatedFile(Destination(file=str(tmp_path / "l"), max_bytes=10, max_files=2))
    for line in ("first\n", "second\n", "third\n", "4\n", "fifth\n"):
        log.write(line)
        log.flush()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "l.txt": "fifth\n",
        "l.1.txt": "third\n4\n",
        "l.2.txt": "second\n",
    }
    log.close()


def test_a_file_is_appended_to_and_none_need_be_kept(tmp_path):
    (tmp_path / "l.txt").write_text("before\n")
    log = RotatedFile(Destination(file=str(tmp_path / "l"), max_bytes=10, max_files=0))
    log.write("x\n")
    log.write("after\n")
    log.close()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"l.txt": "after\n"}


def test_a_file_that_cannot_be_written_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"--log-file: .*/none/l.txt cannot be written \(No such file"):
        RotatedFile(Destination(file=str(tmp_path / "none" / "l")))
