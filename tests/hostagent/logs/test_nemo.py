import pytest

from hostagent.logs import nemo
from hostagent.logs.format import Mark, RejectedLineError

LINE = "Training epoch 1, iteration 39/1000 | lr: 1.2e-05 | global_batch_size: 256 | reduced_train_loss: 9.1"
BAR = "Epoch 1: :  47%|████▋     | 7/15 [06:19<07:13, reduced_train_loss=11.50, global_step=5.000]"


@pytest.mark.parametrize(
    ("line", "mark"),
    [
        (LINE, Mark(39, epoch=1)),
        (LINE.replace("lr:", "global_step: 139 | lr:"), Mark(140)),
        (LINE + " | global_step: 139", Mark(140)),
        (LINE.partition(" |")[0], Mark(39, epoch=1)),
        (BAR, Mark(7, None, 15, 1)),
        (BAR.replace("07:13,", "07:13, 2.00s/it,"), Mark(7, None, 15, 1, 2_000_000_000)),
    ],
)
def test_iteration_lines(line, mark):
    assert nemo.parse(line) == mark


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Validation: iteration 8/8",
        "Sanity checking Validation: iteration 1/2",
        "Validation DataLoader 0: :  50%|█████     | 1/2 [00:01<00:01]",
        "Epoch 1:  47%|████▋     | 7/15 [06:19<07:13, 2.00it/s]",  # Lightning's
        "Training epoch 1 begins",
    ],
)
def test_other_lines(line):
    assert nemo.parse(line) is None


@pytest.mark.parametrize("count", ["-5", "nan", str(10**18)])
def test_absurd_lines(count):
    for line in (LINE.replace("39/", f"{count}/"), BAR.replace(" 7/", f" {count}/")):
        with pytest.raises(RejectedLineError):
            nemo.parse(line)
