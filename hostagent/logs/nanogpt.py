"""nanoGPT's training log.

``train.py`` prints, on the master rank and every ``log_interval`` iterations::

    iter 250: loss 3.1416, time 213.55ms, mfu 25.71%

after the iteration whose index, counted from 0, it names (one optimizer step; gradient accumulation is
inside). ``step 250: train loss 3.1, val loss 3.2`` is evaluation and does not count.
"""

from __future__ import annotations

import re

from hostagent.logs.format import LogFormat, Mark, iteration, milliseconds

_ITERATION = re.compile(r"(?:^|[\]:]) *iter ([^\s:]{1,40}): loss [^\s,]{1,40}, time ([^\s,]{1,40}?)ms(?:,|$)")


def parse(line: str) -> Mark | None:
    """Read one line; see `hostagent.logs.format.LogFormat`."""
    if "iter " not in line or (found := _ITERATION.search(line)) is None:
        return None
    return Mark(iteration(found[1]) + 1, milliseconds(found[2]))


FORMAT = LogFormat("nanogpt", parse)
