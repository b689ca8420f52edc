import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.logs import FORMATS
from hostagent.logs.format import Mark
from hostagent.logs.place import Place
from hostagent.logs.reader import LogReader
from hostagent.logs.tail import Tail

MEGATRON = (
    b" iteration %8d/%8d | consumed samples: 8 | elapsed time per iteration (ms): 500.0 | lm loss: 1 |\n"
)
NANOGPT = b"iter %d: loss 3.1416, time 500.00ms, mfu 25.00%%\n"


@pytest.fixture
def log(tmp_path):
    return tmp_path / "train.log"


def test_names_are_unique():
    assert len({known.name for known in FORMATS}) == len(FORMATS)


@pytest.mark.parametrize(("name", "line", "first"), [("megatron", MEGATRON, 1), ("nanogpt", NANOGPT, 2)])
def test_format_is_detected(log, name, line, first):
    reader = LogReader("stdout", Tail(Place(str(log))), FORMATS)
    log.write_bytes(b"loading data ...\nusing fused kernels\n")
    assert reader.read(1).marks == []
    assert reader.format == ""
    with log.open("ab") as file:
        file.write(line % (1, 10) if name == "megatron" else line % 1)
    assert reader.read(1).marks == [Mark(first, 500_000_000, 10 if name == "megatron" else None)]
    assert reader.format == name
    reader.close()


def test_what_was_there_before_is_not_live_and_what_comes_is(log):
    log.write_bytes(NANOGPT % 1 + NANOGPT % 2)
    an_hour_ago = time.time() - 3600
    os.utime(log, (an_hour_ago, an_hour_ago))
    reader = LogReader("stdout", Tail(Place(str(log))), FORMATS)
    first = reader.read(7200 * 10**9)
    assert (len(first.marks), first.live, round(first.written_ns / 1e9)) == (2, False, 3600)
    with log.open("ab") as file:
        file.write(NANOGPT % 3)
    second = reader.read(7300 * 10**9)
    assert (len(second.marks), second.live, second.written_ns) == (1, True, 7300 * 10**9)
    reader.close()


def test_a_traceback_at_the_end_is_noticed(log):
    log.write_bytes(NANOGPT % 1 + b"Traceback (most recent call last):\n  File ..\n")
    reader = LogReader("stdout", Tail(Place(str(log))), FORMATS)
    reader.read(1)
    assert reader.failed
    with log.open("ab") as file:
        file.write(NANOGPT % 2)
    reader.read(2)
    assert not reader.failed
    reader.close()


def test_format_stays(log):
    reader = LogReader("stdout", Tail(Place(str(log))), FORMATS)
    log.write_bytes(NANOGPT % 5 + MEGATRON % (900, 1000) + NANOGPT % 6)
    assert [mark.completed for mark in reader.read(1).marks] == [6, 7]
    assert reader.format == "nanogpt"
    reader.close()


def test_evaluation_does_not_count_and_absurd_lines_are_counted(log):
    reader = LogReader("stdout", Tail(Place(str(log))), FORMATS)
    log.write_bytes(
        NANOGPT % 1
        + b"step 250: train loss 2.9, val loss 3.1\n"
        + b"iter 1000000000000000000: loss 3.1, time 500.00ms, mfu 1%\n"
        + b"iter -5: loss 3.1, time 500.00ms, mfu 1%\n"
        + b"iter NaN: loss 3.1, time 500.00ms, mfu 1%\n"
        + b"z" * 100_000
        + b"\n"
        + NANOGPT % 2
    )
    assert [mark.completed for mark in reader.read(1).marks] == [2, 3]
    assert reader.rejected == {"iteration out of range": 2, "iteration is not a number": 1}
    assert reader.lines_too_long == 1
    reader.close()


def test_truncation_in_mid_line_does_not_join_lines(log):
    reader = LogReader("stdout", Tail(Place(str(log))), FORMATS)
    log.write_bytes(NANOGPT % 1 + b"x" * 50 + b"iter 1")
    reader.read(1)
    log.write_bytes(NANOGPT % 2)
    assert [mark.completed for mark in reader.read(1).marks] == [3]
    reader.close()


@given(
    st.lists(st.binary(max_size=80) | st.sampled_from([NANOGPT % 3, MEGATRON % (4, 9), b"\r", b"\x1b[31m"]))
)
def test_any_bytes(tmp_path_factory, parts):
    log = tmp_path_factory.mktemp("fuzz") / "log"
    log.write_bytes(b"".join(parts))
    reader = LogReader("stdout", Tail(Place(str(log))), FORMATS)
    for mark in reader.read(1).marks:
        assert mark.completed >= 0
    reader.close()
