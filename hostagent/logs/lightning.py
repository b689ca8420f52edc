"""PyTorch Lightning's progress bars, by tqdm and by rich.

Both count the batches of the epoch, which starts anew each time, and may lack the total::

    Epoch 3:  45%|████▌     | 45/100 [00:05<00:06,  8.30it/s, v_num=0, train_loss=0.41]
    Epoch 3/9:  45%|████▌     | 45/100 [00:05<00:06,  8.30it/s]
    Epoch 3: |          | 45/? [00:05<00:00,  8.30it/s]
    Epoch 3/9  ━━━━━━━━━╸━━━━━━━━━━ 45/100 0:00:05 • 0:00:06 8.30it/s v_num: 0.000 train_loss: 0.410

``Validation DataLoader 0: ..`` and ``Sanity Checking ..`` do not count (Lightning 1.x draws the validation's
batches on the epoch's bar too, where nothing tells them apart). Iterations are batches here: the bars do not
tell optimizer steps where gradients are accumulated.
"""

from __future__ import annotations

import re

from hostagent.logs import bars
from hostagent.logs.epochs import EpochParser
from hostagent.logs.format import START, LogFormat, Mark, iteration, whole

_EPOCH = re.compile(START + r"Epoch ([^\s:/|]{1,40})(?:/-?\d{1,18})?:(?= )(?! :)")
_RICH = re.compile(
    START + r"Epoch ([^\s:/|]{1,40})(?:/-?\d{1,18})? {1,40}[━╸╺╍─\-]{1,1000} {0,40}"
    r"([^\s/]{1,40})/([^\s/]{1,40}) {1,40}(?:\d{1,2}:|-:|\d{1,9} days?, )[^•]{1,20}• [^ ]{1,40} "
    r"([0-9.]{1,20})it/s"
)


def parse(line: str) -> Mark | None:
    """Read a line of the tqdm bar; see `hostagent.logs.format.LogFormat`."""
    if "Epoch " not in line or (found := _EPOCH.match(line)) is None:
        return None
    bar = bars.read(line, found.end())
    if bar is None:
        return None
    return Mark(bar.done, None, bar.total, epoch=iteration(found[1]), pace_ns=bar.pace_ns)


def parse_rich(line: str) -> Mark | None:
    """Read a line of the rich bar."""
    if "• " not in line or (found := _RICH.match(line)) is None:
        return None
    rate = float(found[4]) if found[4].count(".") <= 1 and found[4] != "." else 0.0
    pace_ns = int(1e9 / rate) if rate >= 0.00002 else None
    return Mark(iteration(found[2]), None, whole(found[3]), epoch=iteration(found[1]), pace_ns=pace_ns)


FORMAT = LogFormat("lightning", parse, lambda: EpochParser(parse))
RICH = LogFormat("lightning-rich", parse_rich, lambda: EpochParser(parse_rich))
