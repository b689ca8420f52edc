import pytest

from hostagent.logs import bars
from hostagent.logs.bars import Bar


@pytest.mark.parametrize(
    ("line", "bar"),
    [
        (" 45%|████▌     | 29/64 [00:01<00:00, 50.00it/s, loss=2.3]", Bar(29, 64, 20_000_000)),
        ("100%|##########| 64/64 [1:02:03<00:00,  2.00s/it]", Bar(64, 64, 2_000_000_000)),
        ("|          | 29/? [00:01<00:00, 50.00it/s]", Bar(29, None, 20_000_000)),
        ("29it [00:01, 50.00it/s]", Bar(29, None, 20_000_000)),
        ("  0%|          | 0/64 [00:00<?, ?it/s]", Bar(0, 64, None)),
        (" 45%|█ | 29/64 [00:01<00:00, 0.00it/s]", Bar(29, 64, None)),
        (" 45%|█ | 29/64 [00:01<00:00, 1.2.3it/s]", Bar(29, 64, None)),
        (" 45%|█ | 29/64 [00:01<00:00, 99999999s/it]", Bar(29, 64, None)),
        (" 45%|█ | 29/64 [00:01<00:00, 50.00it/s, cut off in the middle", Bar(29, 64, 20_000_000)),
    ],
)
def test_bars(line, bar):
    assert bars.read(line) == bar


@pytest.mark.parametrize(
    "line",
    [
        "",
        "|",
        " 45%|█ | 29/64",
        " 45%|█ | 29/64 [00:01<00:00, 50.00B/s]",
        "29 it [00:01]",
        " 45%|█ | 29/64 [00:01<00:00]",
    ],
)
def test_what_is_none(line):
    assert bars.read(line) is None


def test_a_bar_without_a_rate_only_where_it_may_be():
    assert bars.read(" 45%|█ | 29/64 [00:01<00:00]", rated=False) == Bar(29, 64, None)
