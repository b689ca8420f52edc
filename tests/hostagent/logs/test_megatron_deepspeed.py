import pytest

from hostagent.logs import megatron_deepspeed
from hostagent.logs.format import Mark, RejectedLineError

LINE = (
    " iteration      199/  317892 | consumed samples:       152832 | consumed tokens:    625999872 | "
    "elapsed time per iteration (ms): 14287.5 | lm loss: 5.905366E+00 | number of skipped iterations:   0 |"
)


def test_iteration_line():
    assert megatron_deepspeed.parse(LINE) == Mark(199, 14_287_500_000, 317_892)


def test_megatron_lms_own_line_is_not_its():
    assert megatron_deepspeed.parse(LINE.replace("consumed tokens:    625999872 | ", "")) is None


def test_absurd_line():
    with pytest.raises(RejectedLineError):
        megatron_deepspeed.parse(LINE.replace("    199/", "-5/"))
