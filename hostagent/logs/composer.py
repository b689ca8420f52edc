"""MosaicML Composer's console log and progress bar.

``ConsoleLogger`` (on stderr) says where it is, and then metrics, a line each::

    [epoch=2][batch=12/64]:
             Train loss/train/total: 2.3025
    [batch=120/5000]:
             Train time/batch: 119

the first for a run limited in epochs, where the batch is the epoch's, the second for one limited in batches.
A run limited in tokens or samples says the batch only in ``Train time/batch``, which is the batches before
this one. Before Composer 0.9 epochs counted from 0 and ``[BATCH]`` stood in front. The bar is ``train`` and
``Epoch   1:`` and tqdm's, in ``ba/s``. ``[Eval batch=1/7]`` and ``eval`` bars do not count.
"""

from __future__ import annotations

import re

from hostagent.logs import bars
from hostagent.logs.epochs import EpochParser
from hostagent.logs.format import START, LogFormat, Mark, RejectedLineError, iteration, whole

_WHERE = re.compile(
    START
    + r"(\[BATCH\])?(?:\[epoch=([^\]\s]{1,40})\])?\[batch=([^\]\s/]{1,40})(?:/([^\]\s]{1,40}))?\](?::|$)"
)
_BAR = re.compile(START + r"train +(?:Epoch +([^\s:]{1,40}):)? *(?=\d{1,3}%\|)")
_BATCH = re.compile(START + r"\s{0,8}Train time/batch: ([^\s]{1,40})$")


def parse(line: str) -> Mark | None:
    """Read one line; see `hostagent.logs.format.LogFormat`."""
    if "[batch=" in line and (found := _WHERE.match(line)):
        epoch = iteration(found[2]) if found[2] else None
        if epoch is not None and not found[1]:
            if epoch == 0:
                raise RejectedLineError("iteration out of range")
            epoch -= 1
        return Mark(iteration(found[3]), None, whole(found[4]), epoch=epoch)
    if "ba/s" in line and (found := _BAR.match(line)) and (bar := bars.read(line, found.end())):
        return Mark(
            bar.done, None, bar.total, epoch=iteration(found[1]) if found[1] else None, pace_ns=bar.pace_ns
        )
    return None


def parse_time(line: str) -> Mark | None:
    """Read the metric that says the batch."""
    if "Train time/batch: " not in line or (found := _BATCH.match(line)) is None:
        return None
    return Mark(iteration(found[1]) + 1)


TIME = LogFormat("composer-time", parse_time)
FORMAT = LogFormat("composer", parse, lambda: EpochParser(parse), supersedes=frozenset({TIME.name}))
