"""ColossalAI's training scripts.

They draw a tqdm bar with the epoch in brackets, counted from 0, or, in the benchmarks, one that is called
``Step`` and print the step, counted from 0, before it is through::

    Epoch [1/3]:  45%|████▌     | 45/100 [00:05<00:06,  8.30it/s, loss=1.23]
    Step:  45%|████▌     | 45/100 [00:05<00:06,  8.30it/s]
    Step 44 loss: 1.2345

the latter behind the bar where both go to one file.
Colossal-LLaMA's ``Epoch 1: ..`` is as Lightning's, and read as that.
"""

from __future__ import annotations

import re

from hostagent.logs import bars
from hostagent.logs.epochs import EpochParser
from hostagent.logs.format import START, LogFormat, Mark, iteration

_EPOCH = re.compile(START + r"Epoch \[([^\]\s/]{1,40})/\d{1,18}\]:")
_BAR = re.compile(START + r"Step:(?= )")
_STEP = re.compile(r"(?:" + START + r"|\])Step ([^\s]{1,40}) loss: ?(?=[^\s])")


def parse(line: str) -> Mark | None:
    """Read one line; see `hostagent.logs.format.LogFormat`."""
    if "Step " in line and (found := _STEP.search(line)):
        return Mark(iteration(found[1]) + 1)
    found = _EPOCH.match(line) or _BAR.match(line)
    if found is None or (bar := bars.read(line, found.end())) is None:
        return None
    epoch = iteration(found[1]) if found.lastindex else None
    return Mark(bar.done, None, bar.total, epoch=epoch, pace_ns=bar.pace_ns)


FORMAT = LogFormat("colossalai", parse, lambda: EpochParser(parse))
