"""DeepSpeed's three kinds of lines, each every ``steps_per_print`` steps; off where that is not set.

- the engine's (``runtime/engine.py``), on rank 0::

      [2026-01-31 12:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] step=200, skipped=4, lr=[..],
      mom=[..]

- the throughput timer's (``utils/timer.py``)::

      [..] [INFO] [timer.py:260:stop] epoch=0/micro_step=800/global_step=200, RunningAvgSamplesPerSec=58.7, ..

  of which the global step counts, not the micro-steps of gradient accumulation. It starts at 0 in a resumed
  run, where the engine's does not, so the engine's is preferred;
- the pipeline engine's (``runtime/pipe/engine.py``), which also has the time::

      steps: 200 loss: 5.9053 iter time (s): 0.713 samples/sec: 44.880

All count optimizer steps, skipped ones (overflow) among them: they have been computed and communicated.
"""

from __future__ import annotations

import re

from hostagent.logs.format import START, LogFormat, Mark, iteration, seconds

_STEP = re.compile(r"(?:^|[\s\]])step=([^\s,]{1,40}), skipped=\d{1,18}, lr=")
_GLOBAL = re.compile(r"/micro_step=[^\s/,]{1,40}/global_step=([^\s,]{1,40}), RunningAvgSamplesPerSec=")
_PIPE = re.compile(
    START + r"steps: ([^\s]{1,40}) loss: .{1,2000}?iter time \(s\): ([^\s]{1,40}) samples/sec: "
)


def parse(line: str) -> Mark | None:
    """Read the engine's line; see `hostagent.logs.format.LogFormat`."""
    if "skipped=" not in line or (found := _STEP.search(line)) is None:
        return None
    return Mark(iteration(found[1]))


def parse_throughput(line: str) -> Mark | None:
    """Read the throughput timer's line."""
    if "global_step=" not in line or (found := _GLOBAL.search(line)) is None:
        return None
    return Mark(iteration(found[1]))


def parse_pipeline(line: str) -> Mark | None:
    """Read the pipeline engine's line."""
    if "iter time (s): " not in line or (found := _PIPE.match(line)) is None:
        return None
    return Mark(iteration(found[1]), seconds(found[2]))


THROUGHPUT = LogFormat("deepspeed-throughput", parse_throughput)
FORMAT = LogFormat("deepspeed", parse, supersedes=frozenset({THROUGHPUT.name}))
PIPELINE = LogFormat(
    "deepspeed-pipeline", parse_pipeline, supersedes=frozenset({FORMAT.name, THROUGHPUT.name})
)
