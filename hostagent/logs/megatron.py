"""Megatron-LM's training log, old and new.

``training_log`` in Megatron's ``training.py`` prints on the last rank, every ``--log-interval`` iterations
(default 100), one line::

    [2026-01-31 12:00:00.000000] iteration      200/  500000 | consumed samples:        51200 |
    elapsed time per iteration (ms): 1523.4 | learning rate: ... | lm loss: ... | ...

Older releases and forks have no time stamp, ``/infinity`` for the total, the time in ``(s)`` or followed by
its average (``1523.4/1530.1``), and launchers may put a rank tag (``[default7]:``, ``7: ``) in front. The
number is that of completed iterations, skipped ones (``number of skipped iterations``) among them: they have
been computed and communicated like any other. ``validation loss at iteration 200 | ...`` is evaluation and
has no slash.
"""

from __future__ import annotations

import re

from hostagent.logs.format import LogFormat, Mark, iteration, milliseconds, seconds, whole

_ITERATION = re.compile(r"(?:^|[\]:|])\s*iteration\s+([^\s/|]{1,40})\s*/\s*(\d{1,40}|infinity)\s*\|")
_ELAPSED = re.compile(r"\| elapsed time per iteration \((ms|s)\): *([^\s|/]{1,40})")


def parse(line: str) -> Mark | None:
    """Read one line; see `hostagent.logs.format.LogFormat`."""
    if "iteration" not in line or (found := _ITERATION.search(line)) is None:
        return None
    elapsed = _ELAPSED.search(line, found.end() - 1)
    duration_ns = None
    if elapsed:
        duration_ns = (milliseconds if elapsed[1] == "ms" else seconds)(elapsed[2])
    return Mark(iteration(found[1]), duration_ns, whole(found[2]))


FORMAT = LogFormat("megatron", parse)
