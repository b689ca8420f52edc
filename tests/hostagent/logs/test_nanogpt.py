import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.logs import nanogpt
from hostagent.logs.format import Mark, RejectedLineError


@pytest.mark.parametrize(
    ("line", "mark"),
    [
        ("iter 0: loss 10.9886, time 32183.56ms, mfu -100.00%", Mark(1, 32_183_560_000)),
        ("iter 250: loss 3.1416, time 213.55ms, mfu 25.71%", Mark(251, 213_550_000)),
        ("iter 250: loss nan, time 213.55ms, mfu 25.71%", Mark(251, 213_550_000)),
        ("[rank0]: iter 5: loss 3.1416, time 10.00ms, mfu 25.71%", Mark(6, 10_000_000)),
        ("iter 5: loss 3.1416, time 10.00ms", Mark(6, 10_000_000)),
    ],
)
def test_iteration_lines(line, mark):
    assert nanogpt.parse(line) == mark


@pytest.mark.parametrize(
    "line",
    [
        "step 250: train loss 2.9, val loss 3.1",
        "saving checkpoint to out",
        "number of parameters: 123.59M",
        "Resuming training from out",
        "iter 250: loss 3.1416",
        "reiter 250: loss 3.1416, time 213.55ms, mfu 25.71%",
        " iteration      100/   1000 | elapsed time per iteration (ms): 210.0 |",
        "tokens per iteration will be: 491,520",
    ],
)
def test_other_lines(line):
    assert nanogpt.parse(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "iter 1000000000000000000: loss 3.1, time 213.55ms, mfu 1%",
        "iter -5: loss 3.1, time 213.55ms, mfu 1%",
        "iter nan: loss 3.1, time 213.55ms, mfu 1%",
        "iter 5: loss 3.1, time nanms, mfu 1%",
        "iter 5: loss 3.1, time -1ms, mfu 1%",
    ],
)
def test_absurd_lines(line):
    with pytest.raises(RejectedLineError):
        nanogpt.parse(line)


@given(
    st.text()
    | st.lists(st.sampled_from(["iter ", "5", ":", " loss ", ", time ", "ms", ",", "]"])).map("".join)
)
def test_any_line_is_read_or_refused(line):
    try:
        mark = nanogpt.parse(line)
    except RejectedLineError:
        return
    assert mark is None or mark.completed >= 1


@pytest.mark.parametrize(
    "hostile", [" " * 60_000, ":" + " " * 60_000, "]iter " * 10_000, "iter 1: loss 1, time " * 3_000]
)
def test_hostile_line_takes_linear_time(hostile):
    begun = time.thread_time()
    assert nanogpt.parse(hostile + "iter ") is None
    assert time.thread_time() - begun < 0.5  # quadratic would be minutes
