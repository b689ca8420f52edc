import pytest

from hostagent.logs import composer
from hostagent.logs.format import Mark, RejectedLineError

BAR = "train          Epoch   1:   45%|###       | 29/64 [00:01<00:00, 50.00ba/s, loss/train=2.3]"


@pytest.mark.parametrize(
    ("line", "mark"),
    [
        ("[epoch=2][batch=12/64]:", Mark(12, None, 64, 1)),
        ("[epoch=2][batch=12]:", Mark(12, None, None, 1)),
        ("[epoch=2][batch=12/64]", Mark(12, None, 64, 1)),
        ("[batch=120/5000]:", Mark(120, None, 5000)),
        ("[BATCH][epoch=2][batch=12/64]: {'loss/train': 2.3}", Mark(12, None, 64, 2)),
        (BAR, Mark(29, None, 64, 1, 20_000_000)),
        (BAR.replace("Epoch   1: ", "             "), Mark(29, None, 64, None, 20_000_000)),
    ],
)
def test_iteration_lines(line, mark):
    assert composer.parse(line) == mark


def test_the_batch_of_a_run_that_is_limited_in_tokens():
    assert composer.parse_time("\t Train time/batch: 119") == Mark(120)
    assert composer.parse_time("\t Train time/batch_in_epoch: 119") is None
    assert composer.TIME.name in composer.FORMAT.supersedes


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[Eval batch=1/7] Eval on eval data",
        "[token=65536/1000000]:",
        "\t Train loss/train/total: 2.3025",
        BAR.replace("train   ", "eval    "),
        BAR.replace("ba/s", "B/s"),
    ],
)
def test_other_lines(line):
    assert composer.parse(line) is None


@pytest.mark.parametrize("count", ["-5", "nan", str(10**18)])
def test_absurd_lines(count):
    for line in (f"[epoch=1][batch={count}/64]:", f"[batch={count}/64]:", BAR.replace("29/", f"{count}/")):
        with pytest.raises(RejectedLineError):
            composer.parse(line)


def test_there_is_no_epoch_0():
    with pytest.raises(RejectedLineError):
        composer.parse("[epoch=0][batch=12/64]:")
