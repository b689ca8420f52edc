"""Every golden log says what its JSON says; docs/agent.md lists them."""

import gzip
import json
import re
from pathlib import Path

import pytest

from hostagent.logs import FORMATS
from hostagent.logs.custom import custom
from hostagent.logs.offline import PIECE, read
from leveller.errors import UserError

DATA = Path(__file__).parents[2] / "data" / "logs"
LOGS = sorted(DATA.glob("*.log"))
DOCS = Path(__file__).parents[3] / "docs" / "agent.md"


@pytest.mark.parametrize("log", LOGS, ids=[log.stem for log in LOGS])
def test_golden_log(log):
    assert json.loads(json.dumps(read(log).as_json())) == json.loads(log.with_suffix(".json").read_text())


def test_every_golden_log_is_in_the_documentation_and_every_format_has_one():
    named = set(re.findall(r"`([a-z0-9-]+)\.log`", DOCS.read_text()))
    assert named == {log.stem for log in LOGS}
    formats = {json.loads(log.with_suffix(".json").read_text())["format"] for log in LOGS}
    assert formats == {known.name for known in FORMATS} | {None}


def test_a_users_own_format(tmp_path):
    log = tmp_path / "log"
    log.write_text("done 5\ndone 6\niter 9: loss 1, time 1.0ms\ndone 7\n")
    summary = read(log, (custom("mine", r"done (?P<iteration>\d+)"), *FORMATS))
    assert summary.as_json() == {
        "format": "mine", "iterations": [[1, 5], [2, 6], [4, 7]], "last": 7, "rejected": {},
    }  # fmt: skip


def test_the_last_line_need_not_end_and_one_that_nothing_confirms_is_told(tmp_path):
    line = "iter %d: loss 3.1, time 1.00ms"
    log = tmp_path / "log"
    log.write_text("\n".join(line % n for n in (0, 1, 2, 500)))
    assert read(log).as_json() == {
        "format": "nanogpt",
        "iterations": [[1, 1], [2, 2], [3, 3]],
        "last": 3,
        "rejected": {"unconfirmed iteration": 1},
    }
    log.write_text("\n".join(line % n for n in (0, 500)))
    assert read(log).iterations == [(1, 1), (2, 501)]  # a log interval, seen once


def test_lines_of_megabytes_do_not_move_the_numbers(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"x" * (3 * PIECE) + b"\niter 0: loss 3.1, time 1.00ms\n" + b"y" * PIECE + b"\n")
    assert read(log).as_json()["iterations"] == [[2, 1]]
    assert read(log).rejected == {"line too long": 1}


@pytest.mark.parametrize("make", [None, "directory", "gzip"])
def test_what_cannot_be_read_is_one_line(tmp_path, make):
    log = tmp_path / "log"
    if make == "directory":
        log.mkdir()
    elif make == "gzip":
        log.write_bytes(gzip.compress(b"iter 0: loss 3.1, time 1.00ms\n"))
    with pytest.raises(UserError) as caught:
        read(log)
    assert str(log) in str(caught.value)
    assert ("compressed" in str(caught.value)) == (make == "gzip")
