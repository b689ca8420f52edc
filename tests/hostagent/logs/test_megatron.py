import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.logs import megatron
from hostagent.logs.format import Mark, RejectedLineError

NEW = (
    " [2026-01-31 12:00:00.123456] iteration      200/  500000 | consumed samples:        51200 | "
    "elapsed time per iteration (ms): 1523.4 | throughput per GPU (TFLOP/s/GPU): 312.5 | "
    "learning rate: 1.500000E-04 | global batch size:   256 | lm loss: 3.141593E+00 | "
    "loss scale: 1.0 | grad norm: 0.973 | number of skipped iterations:   0 | number of nan iterations:   0 |"
)
OLD = (
    " iteration      100/   1000 | consumed samples:          800 | elapsed time per iteration (ms): 210.0 | "
    "learning rate: 1.500E-04 | lm loss: 6.5E+00 | loss scale: 4294967296.0 |"
)


@pytest.mark.parametrize(
    ("line", "mark"),
    [
        (NEW, Mark(200, 1_523_400_000, 500_000)),
        (OLD, Mark(100, 210_000_000, 1000)),
        ("[default7]:" + NEW, Mark(200, 1_523_400_000, 500_000)),
        ("7: " + OLD, Mark(100, 210_000_000, 1000)),
        (" iteration 7/ 10 | consumed samples: 1 | lm loss: 1.0 |", Mark(7, None, 10)),
        (OLD.replace("(ms): 210.0", "(s): 105.22"), Mark(100, 105_220_000_000, 1000)),
        (OLD.replace("210.0", "812.4/815.2").replace("1000 |", "infinity |"), Mark(100, 812_400_000, None)),
        (" [2026-01-31 12:00:00] episode 3 | iteration 7/ 10 | lm loss: 1.0 |", Mark(7, None, 10)),
        (
            " iteration 1000000/99999999 | elapsed time per iteration (ms): 0.5 |",
            Mark(1_000_000, 500_000, 99_999_999),
        ),
    ],
)
def test_iteration_lines(line, mark):
    assert megatron.parse(line) == mark


@pytest.mark.parametrize(
    "line",
    [
        "",
        " validation loss at iteration 200 | lm loss value: 3.1E+00 | lm loss PPL: 2.2E+01 |",
        "validation loss at iteration 200 on test set | lm loss value: 3.1 |",
        " saving checkpoint at iteration     200 to /ckpt in torch format",
        "  successfully loaded checkpoint from /ckpt [ t 1/1, p 1/1 ] at iteration 200",
        "(min, max) time across ranks (ms): iteration 5/6",
        "number of skipped iterations:   0 |",
        "my iteration 5/10 | is not theirs",
        "iter 250: loss 3.1416, time 213.55ms, mfu 25.71%",
        "[before training loop] iteration",
    ],
)
def test_other_lines(line):
    assert megatron.parse(line) is None


@pytest.mark.parametrize(
    "line",
    [
        OLD.replace("     100/", str(10**18) + "/"),
        OLD.replace("     100/", "-5/"),
        OLD.replace("     100/", "NaN/"),
        OLD.replace("210.0", "nan"),
        OLD.replace("210.0", "-3"),
        OLD.replace("210.0", "0.0"),
    ],
)
def test_absurd_lines(line):
    with pytest.raises(RejectedLineError):
        megatron.parse(line)


PIECES = st.sampled_from(
    [" ", "]", ":", "iteration", "/", "|", "5", "a", "elapsed time per iteration (ms):", "\t"]
)


@given(st.lists(PIECES, max_size=60).map("".join) | st.text())
def test_any_line_is_read_or_refused(line):
    try:
        mark = megatron.parse(line)
    except RejectedLineError:
        return
    assert mark is None or mark.completed >= 0


@pytest.mark.parametrize(
    "hostile",
    [" " * 60_000, "iteration" + " " * 60_000, ": " * 30_000, "]iteration " * 6_000, "iteration 1" * 6_000],
)
def test_hostile_line_takes_linear_time(hostile):
    import time

    begun = time.thread_time()
    assert megatron.parse(hostile + "iteration") is None
    assert time.thread_time() - begun < 0.5  # quadratic would be minutes
