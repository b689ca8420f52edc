"""NVIDIA NeMo's training log.

``ProgressPrinter`` prints every ``log_interval`` steps (NeMo 2)::

    Training epoch 0, iteration 39/1000 | lr: 1.2e-05 | global_batch_size: 256 | global_step: 39 | ..

whose iteration is the epoch's; the global step, where it is there, is the index from 0 of the step just done,
and is preferred. ``MegatronProgressBar`` (NeMo 1, and terminals) draws a bar with two colons and no rate::

    Epoch 0: :  47%|████▋     | 7/15 [06:19<07:13, reduced_train_loss=11.50, global_step=5.000, ..]

``Validation: iteration n/total`` does not count. The total of NeMo 2's line may be the run's or the epoch's,
so it is not used.
"""

from __future__ import annotations

import re

from hostagent.logs import bars
from hostagent.logs.epochs import EpochParser
from hostagent.logs.format import START, LogFormat, Mark, iteration

_GLOBAL = re.compile(r"\| global_step: (\d{1,18})(?: |$)")
_LINE = re.compile(START + r"Training epoch ([^\s,]{1,40}), iteration ([^\s/]{1,40})/[^\s|]{1,40}(?: \||$)")
_BAR = re.compile(START + r"Epoch ([^\s:/|]{1,40}): :")


def parse(line: str) -> Mark | None:
    """Read one line; see `hostagent.logs.format.LogFormat`."""
    if "Training epoch " in line and (found := _LINE.match(line)):
        step, epoch = iteration(found[2]), iteration(found[1])
        told = _GLOBAL.search(line, found.end() - 2)
        return Mark(iteration(told[1]) + 1) if told else Mark(step, epoch=epoch)
    if (
        "Epoch " in line
        and (found := _BAR.match(line))
        and (bar := bars.read(line, found.end(), rated=False))
    ):
        return Mark(bar.done, None, bar.total, epoch=iteration(found[1]), pace_ns=bar.pace_ns)
    return None


FORMAT = LogFormat("nemo", parse, lambda: EpochParser(parse))
