import pytest

from hostagent.logs import huggingface
from hostagent.logs.format import Mark, RejectedLineError
from hostagent.logs.huggingface import TrainingBar


def bar(done, total, rate="2.50it/s"):
    return f"{100 * done // total:3d}%|{'█' * 3:10}| {done}/{total} [00:12<06:30,  {rate}]"


@pytest.mark.parametrize(
    ("line", "mark"),
    [
        (bar(30, 1000), Mark(30, None, 1000, pace_ns=400_000_000)),
        (bar(30, 1000, "1.50s/it"), Mark(30, None, 1000, pace_ns=1_500_000_000)),
        (bar(0, 1000, "?it/s"), Mark(0, None, 1000)),
        ("[rank0]: " + bar(30, 1000), Mark(30, None, 1000, pace_ns=400_000_000)),
    ],
)
def test_iteration_lines(line, mark):
    assert huggingface.parse(line) == mark


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{'loss': 2.3, 'learning_rate': 4.85e-05, 'epoch': 0.03}",
        "Map: " + bar(30, 1000),
        "Downloading shards: " + bar(1, 2),
        bar(30, 1000, "512.3 examples/s"),
        "  3%|▎         | 1.5M/20M [00:12<06:30, 2.48MB/s]",
        "progress 3%|",
    ],
)
def test_other_lines(line):
    assert huggingface.parse(line) is None


@pytest.mark.parametrize("count", ["-5", "nan", str(10**18)])
def test_absurd_lines(count):
    with pytest.raises(RejectedLineError):
        huggingface.parse(bar(30, 1000).replace("30/", f"{count}/"))


def counted(*lines):
    see = TrainingBar()
    return [mark.completed for line in lines if (mark := see(line)) is not None]


def test_evaluation_bars_do_not_count():
    evaluation = [bar(n, 13) for n in range(14)]
    assert counted(bar(1, 100), bar(2, 100), *evaluation, bar(3, 100)) == [1, 2, 3]


def test_an_evaluation_after_the_training_does_not_count():
    end = "{'train_runtime': 424.3, 'epoch': 3.0}"
    assert counted(bar(99, 100), bar(100, 100), end, bar(1, 13), bar(13, 13)) == [99, 100]
    assert counted(bar(1, 100), bar(13, 13), bar(100, 100), bar(1, 13)) == [1, 100]  # known for an evaluation


def test_an_evaluation_before_the_training_is_no_obstacle():
    assert counted(bar(12, 13), bar(13, 13), bar(0, 100), bar(1, 100)) == [12, 13, 0, 1]


def test_another_training_after_the_first_counts():
    assert counted(bar(100, 100), "{'train_runtime': 4.3}", bar(0, 50), bar(1, 50)) == [100, 0, 1]


def test_what_it_remembers_can_be_recalled():
    lines = [bar(n, 100) for n in (0, 10, 20)] + [bar(n, 10) for n in (1, 10)]  # an evaluation
    lines += [bar(n, 100) for n in (30, 100)] + ["{'train_runtime': 1.0}", bar(5, 10)]
    for stop in range(len(lines)):
        whole, before, after = TrainingBar(), TrainingBar(), TrainingBar()
        for line in lines[:stop]:
            assert whole(line) == before(line)
        after.recall(before.remember())
        assert [whole(line) for line in lines[stop:]] == [after(line) for line in lines[stop:]]
    with pytest.raises(ValueError, match="not enough values"):
        TrainingBar().recall((1,))
