import pytest

from hostagent.logs import lightning
from hostagent.logs.format import Mark, RejectedLineError

TQDM = "Epoch 3:  45%|████▌     | 45/100 [00:05<00:06,  8.00it/s, v_num=0, train_loss=0.41]"
RICH = "Epoch 3/9  ━━━━━━━━━╸━━━━━━━━━━ 45/100 0:00:05 • 0:00:06 8.00it/s v_num: 0.000 train_loss: 0.410"
PACE = 125_000_000


@pytest.mark.parametrize(
    ("parse", "line", "mark"),
    [
        (lightning.parse, TQDM, Mark(45, None, 100, 3, PACE)),
        (lightning.parse, TQDM.replace("Epoch 3", "Epoch 3/9"), Mark(45, None, 100, 3, PACE)),
        (lightning.parse, TQDM.replace("Epoch 3", "Epoch 3/-2"), Mark(45, None, 100, 3, PACE)),
        (lightning.parse, TQDM.replace("/100", "/?").replace(" 45%", ""), Mark(45, None, None, 3, PACE)),
        (lightning.parse, "Epoch 3: 45it [00:05,  8.00it/s, v_num=0]", Mark(45, None, None, 3, PACE)),
        (lightning.parse_rich, RICH, Mark(45, None, 100, 3, PACE)),
        (lightning.parse_rich, RICH.replace("45/100", "45/--"), Mark(45, None, None, 3, PACE)),
        (lightning.parse_rich, RICH.replace("0:00:06", "-:--:--"), Mark(45, None, 100, 3, PACE)),
        (lightning.parse_rich, RICH.replace("8.00it", "0.00it"), Mark(45, None, 100, 3)),
    ],
)
def test_iteration_lines(parse, line, mark):
    assert parse(line) == mark


@pytest.mark.parametrize("parse", [lightning.parse, lightning.parse_rich])
@pytest.mark.parametrize(
    "line",
    [
        "",
        "Validation DataLoader 0:  50%|█████     | 1/2 [00:00<00:00, 22.11it/s]",
        "Sanity Checking DataLoader 0:  50%|█████     | 1/2 [00:00<00:00, 22.11it/s]",
        "Validation ━━━━━━━━━━ 2/2 0:00:00 • 0:00:00 40.00it/s",
        "Epoch 3: train_loss=0.41",
        "Epoch 0: :  47%|████▋     | 7/15 [06:19<07:13, global_step=5.000]",  # NeMo's
        "Epoch 3, global step 400: 'val_loss' was not in top 1",
    ],
)
def test_other_lines(parse, line):
    assert parse(line) is None


@pytest.mark.parametrize(
    ("parse", "line"),
    [
        (lightning.parse, TQDM.replace(" 45/", " -5/")),
        (lightning.parse, TQDM.replace("Epoch 3", "Epoch nan")),
        (lightning.parse_rich, RICH.replace(" 45/", f" {10**18}/")),
    ],
)
def test_absurd_lines(parse, line):
    with pytest.raises(RejectedLineError):
        parse(line)


@pytest.mark.parametrize("known", [lightning.FORMAT, lightning.RICH])
def test_the_count_goes_on_from_epoch_to_epoch(known):
    see = known.open()
    line = TQDM if known is lightning.FORMAT else RICH
    marks = [
        see(line.replace("Epoch 3", f"Epoch {epoch}").replace("45/", f"{done}/"))
        for epoch, done in [(0, 99), (0, 100), (0, 0), (1, 0), (1, 1)]
    ]
    assert [mark and mark.completed for mark in marks] == [99, 100, None, None, 101]
