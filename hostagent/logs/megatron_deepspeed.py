"""Megatron-DeepSpeed's training log.

Megatron-LM's line with ``| consumed tokens: ... |`` in it, and the time in ms (Microsoft's) or s
(BigScience's)::

    iteration      199/  317892 | consumed samples:       152832 | consumed tokens:    625999872 | elapsed
    time per iteration (ms): 14287.5 | learning rate: 2.407E-04 | ... | number of skipped iterations:   0 |
    ...

DeepSpeed's own lines (``step=200, skipped=4, ..``) stand between them, and say less.
"""

from __future__ import annotations

from hostagent.logs import megatron
from hostagent.logs.format import LogFormat, Mark


def parse(line: str) -> Mark | None:
    """Read one line; see `hostagent.logs.format.LogFormat`."""
    return megatron.parse(line) if "| consumed tokens:" in line else None


FORMAT = LogFormat(
    "megatron-deepspeed",
    parse,
    supersedes=frozenset({"deepspeed", "deepspeed-throughput", "deepspeed-pipeline"}),
)
