import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.logs import FORMATS
from hostagent.logs.format import Mark
from hostagent.logs.reader import LogReader

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
    reader = LogReader(str(log))
    log.write_bytes(b"loading data ...\nusing fused kernels\n")
    assert reader.read() == []
    assert reader.format == ""
    with log.open("ab") as file:
        file.write(line % (1, 10) if name == "megatron" else line % 1)
    assert reader.read() == [Mark(first, 500_000_000)]
    assert reader.format == name
    reader.close()


def test_format_stays(log):
    reader = LogReader(str(log))
    log.write_bytes(NANOGPT % 5 + MEGATRON % (900, 1000) + NANOGPT % 6)
    assert [mark.completed for mark in reader.read()] == [6, 7]
    assert reader.format == "nanogpt"
    reader.close()


def test_evaluation_does_not_count_and_absurd_lines_are_counted(log):
    reader = LogReader(str(log))
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
    assert [mark.completed for mark in reader.read()] == [2, 3]
    assert reader.rejected == {"iteration out of range": 2, "iteration is not a number": 1}
    assert reader.lines_too_long == 1
    reader.close()


def test_truncation_in_mid_line_does_not_join_lines(log):
    reader = LogReader(str(log))
    log.write_bytes(NANOGPT % 1 + b"x" * 50 + b"iter 1")
    reader.read()
    log.write_bytes(NANOGPT % 2)
    assert [mark.completed for mark in reader.read()] == [3]
    reader.close()


@given(
    st.lists(st.binary(max_size=80) | st.sampled_from([NANOGPT % 3, MEGATRON % (4, 9), b"\r", b"\x1b[31m"]))
)
def test_any_bytes(tmp_path_factory, parts):
    log = tmp_path_factory.mktemp("fuzz") / "log"
    log.write_bytes(b"".join(parts))
    reader = LogReader(str(log))
    for mark in reader.read():
        assert mark.completed >= 0
    reader.close()
