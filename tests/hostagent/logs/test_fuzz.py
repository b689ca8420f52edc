"""Every parser on any line: it reads it, refuses it or leaves it, and is quick."""

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.logs import FORMATS
from hostagent.logs.format import MAX_ITERATION, RejectedLineError
from hostagent.logs.lines import MAX_LINE
from hostagent.logs.offline import read

DATA = Path(__file__).parents[2] / "data" / "logs"
LINES = sorted(
    {
        part
        for log in DATA.glob("*.log")
        for line in log.read_bytes().decode("utf-8", "replace").splitlines()
        for part in line.split("\r")
        if 0 < len(part) < 500
    }
)
NUMBERS = ["-5", "nan", str(10**18), "9" * 5000, "0", "1e9", "٣", "", "inf"]


@st.composite
def damaged(draw):
    """A line of a golden log, cut, doubled, and with a number or a piece replaced."""
    line = draw(st.sampled_from(LINES))
    digits = [at for at, char in enumerate(line) if char.isdigit()]
    if digits and draw(st.booleans()):
        at = draw(st.sampled_from(digits))
        line = line[:at] + draw(st.sampled_from(NUMBERS)) + line[at + 1 :]
    low = draw(st.integers(0, len(line)))
    high = draw(st.integers(low, len(line)))
    return draw(
        st.sampled_from([line, line[low:high], line[:low] + line[high:], line * 2, line[low:] + line])
    )


@pytest.mark.parametrize("known", FORMATS, ids=[known.name for known in FORMATS])
@given(line=damaged() | st.text(max_size=300))
def test_any_line(known, line):
    for parse in (known.parse, known.open()):
        with contextlib.suppress(RejectedLineError):
            mark = parse(line)
            assert mark is None or 0 <= mark.completed <= MAX_ITERATION
            assert mark is None or mark.duration_ns is None or mark.duration_ns > 0
            assert mark is None or mark.pace_ns is None or mark.pace_ns > 0
            assert mark is None or mark.total is None or mark.total > 0


@pytest.mark.parametrize("known", FORMATS, ids=[known.name for known in FORMATS])
@pytest.mark.parametrize(
    "piece",
    [
        " ",
        "|",
        "[",
        "1",
        "step: ",
        "Epoch ",
        "| 1/2 [",
        "iteration ",
        "Step 1 loss:",
        "]",
        "%|",
        "━",
        "=1/",
        ": ",
        "\t",
    ],
)
def test_hostile_lines_take_linear_time(known, piece):
    line = (piece * MAX_LINE)[:MAX_LINE]
    for text in (
        line,
        "Epoch 1: " + line,
        "steps: 1 loss: " + line,
        "[epoch=1][batch=" + line,
        line + "global_step=",
    ):
        begun = time.thread_time()
        with contextlib.suppress(RejectedLineError):
            known.parse(text)
        assert time.thread_time() - begun < 0.5  # quadratic would be minutes


@given(st.lists(damaged() | st.text(max_size=50), max_size=40), st.sampled_from(["\n", "\r", "\r\n", "\0\n"]))
def test_any_log(tmp_path_factory, lines, end):
    log = tmp_path_factory.mktemp("fuzz") / "log"
    log.write_bytes(end.join(lines).encode("utf-8", "surrogatepass"))
    summary = read(log)
    json.dumps(summary.as_json())
    assert all(0 <= iteration <= MAX_ITERATION for _, iteration in summary.iterations)
    assert [line for line, _ in summary.iterations] == sorted(line for line, _ in summary.iterations)


ATHERIS = """
import sys, atheris
with atheris.instrument_imports(include=["hostagent"]):
    from hostagent.logs import FORMATS
    from hostagent.logs.format import RejectedLineError
    from hostagent.logs.lines import LineSplitter

def one(data):
    for line in LineSplitter().feed(data + b"\\n"):
        for known in FORMATS:
            try:
                known.open()(line)
            except RejectedLineError:
                pass

atheris.Setup(sys.argv, one)
atheris.Fuzz()
"""


def test_atheris(tmp_path):
    if importlib.util.find_spec("atheris") is None:
        pytest.skip("atheris is not installed")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number, line in enumerate(LINES):
        (corpus / str(number)).write_text(line)
    done = subprocess.run(
        [sys.executable, "-c", ATHERIS, "-max_total_time=10", f"-artifact_prefix={tmp_path}/", str(corpus)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
