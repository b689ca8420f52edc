import pytest

from hostagent.logs import torchtitan
from hostagent.logs.format import Mark, RejectedLineError

LINE = (
    "[rank0]:[titan] 2026-01-31 12:00:00,000 - root - INFO - step: 10  loss:  7.9453  grad_norm:  2.9  "
    "memory: 30.12GiB(38.04%)  tps: 4,567  tflops: 123.45  mfu: 25.71%"
)


@pytest.mark.parametrize(
    "line",
    [
        LINE,
        LINE.replace("tps", "wps"),
        LINE.partition(":[titan] ")[2],
        LINE.partition("- INFO - ")[2],
        LINE.replace("step: 10", "step:  10"),
    ],
)
def test_iteration_lines(line):
    assert torchtitan.parse(line) == Mark(10)


@pytest.mark.parametrize(
    "line",
    [
        "",
        LINE.replace("step: 10", "validate step: 10"),
        "[titan] - root - INFO - Training starts at step 1.",
        "[titan] - root - INFO - step: 10  saved",
        "step: 10  loss: 3.2",
    ],
)
def test_other_lines(line):
    assert torchtitan.parse(line) is None


@pytest.mark.parametrize("count", ["-5", "nan", str(10**18)])
def test_absurd_lines(count):
    with pytest.raises(RejectedLineError):
        torchtitan.parse(LINE.replace("step: 10", f"step: {count}"))
