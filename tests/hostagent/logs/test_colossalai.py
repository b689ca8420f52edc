import pytest

from hostagent.logs import colossalai
from hostagent.logs.format import Mark, RejectedLineError

EPOCH = "Epoch [1/3]:  45%|████▌     | 45/100 [00:05<00:06,  8.00it/s, loss=1.23]"
STEP = "Step:  45%|████▌     | 45/100 [00:05<00:06,  8.00it/s]"


@pytest.mark.parametrize(
    ("line", "mark"),
    [
        (EPOCH, Mark(45, None, 100, 1, 125_000_000)),
        (STEP, Mark(45, None, 100, None, 125_000_000)),
        ("Step 44 loss: 1.2345", Mark(45)),
        ("Step 44 loss: tensor(10.9, device='cuda:0')", Mark(45)),
        (STEP + "Step 45 loss: 1.2345", Mark(46)),
    ],
)
def test_iteration_lines(line, mark):
    assert colossalai.parse(line) == mark


@pytest.mark.parametrize(
    "line",
    ["", "Step 44", "Eval Step 44 loss: 1.0", "Epoch [1/3], loss: 1.2", "Epoch 1:  45%|█ | 4/9 [0<0, 1it/s]"],
)
def test_other_lines(line):
    assert colossalai.parse(line) is None


@pytest.mark.parametrize("count", ["-5", "nan", str(10**18)])
def test_absurd_lines(count):
    for line in (EPOCH.replace("45/", f"{count}/"), f"Step {count} loss: 1.2"):
        with pytest.raises(RejectedLineError):
            colossalai.parse(line)
