"""Hugging Face Transformers' Trainer.

``ProgressCallback`` draws a tqdm bar without description on stderr, whose count is that of optimizer steps
(gradient accumulation is inside one), and prints each log as a dictionary without the step::

      3%|▎         | 30/1000 [00:12<06:30,  2.48it/s]
    {'loss': 2.3026, 'grad_norm': 1.2, 'learning_rate': 4.85e-05, 'epoch': 0.03}

Evaluation draws a bar of the same looks, told only by another total. ``{'train_runtime': ..}`` ends the
training, and with it what counts. Accelerate and plain loops over ``tqdm(loader)`` draw the same bar;
so do scripts that prepare data, so a line of any other format takes its place.
"""

from __future__ import annotations

import re

from hostagent.logs import bars
from hostagent.logs.format import ANYBODYS, START, LogFormat, Mark

_BARE = re.compile(START + r"(?=\d{1,3}%\|)")
_END = re.compile(START + r"\{'train_runtime'")

MAX_EVALUATIONS = 64
"""Most totals of evaluations that are remembered."""


def parse(line: str) -> Mark | None:
    """Read one line; see `hostagent.logs.format.LogFormat`."""
    if "%|" not in line or (found := _BARE.match(line)) is None:
        return None
    bar = bars.read(line, found.end())
    return Mark(bar.done, None, bar.total, pace_ns=bar.pace_ns) if bar else None


class TrainingBar:
    """Tells the training's bar from those of evaluation in one log.

    The first total seen is the training's. A bar of another total counts only after the training's has come
    to its end (so it was an evaluation before the training, or the next training), and one that has come to
    its end in between was an evaluation for good.
    """

    def __init__(self) -> None:
        self._total: int | None = None
        self._complete = False
        self._evaluations: set[int] = set()
        self._over = False

    def __call__(self, line: str) -> Mark | None:
        """Read one line; see `hostagent.logs.format.LogFormat`."""
        if "train_runtime" in line and _END.match(line):
            self._over = True
            return None
        mark = parse(line)
        if mark is None or mark.total is None:
            return None
        if self._over and mark.completed > 0:
            return None  # a training's bar begins at 0
        if mark.total != self._total and not self._adopt(mark.total):
            if mark.completed == mark.total and len(self._evaluations) < MAX_EVALUATIONS:
                self._evaluations.add(mark.total)
            return None
        self._over = False
        self._complete = mark.completed == mark.total
        return mark

    def remember(self) -> tuple[int, ...]:
        """Return the training's total (0: none yet), whether it is complete and over, evaluations' totals."""
        return (self._total or 0, int(self._complete), int(self._over), *self._evaluations)

    def recall(self, numbers: tuple[int, ...]) -> None:
        """Remember what `remember` returned. Raises ValueError where it cannot have."""
        total, complete, over, *evaluations = numbers
        self._total, self._complete, self._over = total or None, bool(complete), bool(over)
        self._evaluations = set(evaluations[:MAX_EVALUATIONS])

    def _adopt(self, total: int) -> bool:
        if total in self._evaluations or not (self._total is None or self._complete):
            return False
        self._total = total
        return True


FORMAT = LogFormat("huggingface", parse, TrainingBar, rank=ANYBODYS)
