"""torchtitan's training log.

``MetricsProcessor.log`` says at step 1 and then every ``log_freq`` steps, on stderr and with ANSI colours
between the words::

    [rank0]:[titan] 2026-01-31 12:00:00,000 - root - INFO - step: 10  loss:  7.9453  grad_norm:  2.9  memory:
    .. tps: 4,567  tflops: ..  mfu: 25.71%

Older releases say ``wps`` for ``tps``. Steps are optimizer steps. ``validate step: 10  loss: ..`` does not
count.
"""

from __future__ import annotations

import re

from hostagent.logs.format import LogFormat, Mark, iteration

_STEP = re.compile(r"(?:^|- |\]:? ?)step: {1,8}([^\s]{1,40}) {1,8}loss: ")
_SPEED = re.compile(r"(?:tps|wps|memory): ")


def parse(line: str) -> Mark | None:
    """Read one line; see `hostagent.logs.format.LogFormat`."""
    if "step: " not in line or (found := _STEP.search(line)) is None:
        return None
    return Mark(iteration(found[1])) if _SPEED.search(line, found.end()) else None


FORMAT = LogFormat("torchtitan", parse)
