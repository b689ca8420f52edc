import pytest

from hostagent.logs import deepspeed
from hostagent.logs.format import Mark, RejectedLineError

ENGINE = (
    "[2026-03-07 15:27:15,063] [INFO] [logging.py:96:log_dist] [Rank 0] "
    "step=200, skipped=4, lr=[0.001], mom=[(0.9, 0.95)]"
)
TIMER = (
    "[2026-03-07 15:27:15,063] [INFO] [timer.py:260:stop] epoch=0/micro_step=800/global_step=200, "
    "RunningAvgSamplesPerSec=58.7, CurrSamplesPerSec=61.3, MemAllocated=6.01GB, MaxMemAllocated=19.52GB"
)
PIPE = "steps: 200 loss: 5.9053 iter time (s): 0.713 samples/sec: 44.880"


@pytest.mark.parametrize(
    ("parse", "line", "mark"),
    [
        (deepspeed.parse, ENGINE, Mark(200)),
        (deepspeed.parse, "worker-1: " + ENGINE, Mark(200)),
        (deepspeed.parse_throughput, TIMER, Mark(200)),  # not the micro-steps of gradient accumulation
        (deepspeed.parse_pipeline, PIPE, Mark(200, 713_000_000)),
        (
            deepspeed.parse_pipeline,
            PIPE.replace("iter time", "moe_loss: 0.01 iter time"),
            Mark(200, 713_000_000),
        ),
        (deepspeed.parse_pipeline, "[default0]:" + PIPE, Mark(200, 713_000_000)),
    ],
)
def test_iteration_lines(parse, line, mark):
    assert parse(line) == mark


@pytest.mark.parametrize("parse", [deepspeed.parse, deepspeed.parse_throughput, deepspeed.parse_pipeline])
@pytest.mark.parametrize(
    "line",
    [
        "",
        "[Rank 0] time (ms) | fwd_microstep: 100.0 | bwd_microstep: 200.0 | step_microstep: 3.0",
        "epoch=0/micro_step=800/global_step=200, vm %: 3.4, swap %: 0.0",
        "Grad overflow on iteration: 14075",
        "my_step=200, skipped=4, lr=[0.1]",
        "steps: 200 loss: 5.9",
    ],
)
def test_other_lines(parse, line):
    assert parse(line) is None


@pytest.mark.parametrize(
    ("parse", "line"),
    [
        (deepspeed.parse, ENGINE.replace("step=200", "step=-5")),
        (deepspeed.parse, ENGINE.replace("step=200", "step=nan")),
        (deepspeed.parse_throughput, TIMER.replace("global_step=200", f"global_step={10**18}")),
        (deepspeed.parse_pipeline, PIPE.replace("0.713", "nan")),
        (deepspeed.parse_pipeline, PIPE.replace("0.713", "0.000")),
    ],
)
def test_absurd_lines(parse, line):
    with pytest.raises(RejectedLineError):
        parse(line)


def test_what_says_more_replaces_what_says_less():
    assert deepspeed.THROUGHPUT.name in deepspeed.FORMAT.supersedes
    assert {deepspeed.THROUGHPUT.name, deepspeed.FORMAT.name} == deepspeed.PIPELINE.supersedes
