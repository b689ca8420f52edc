"""Counts that start anew with each epoch, made into one that goes on."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from hostagent.logs.format import MAX_ITERATION, Mark, Parser, RejectedLineError

KEPT = 8
"""So many epochs' beginnings are remembered, to go back to."""


class EpochParser:
    """Wraps a parser whose marks count within an epoch; its own marks count over all epochs.

    An epoch's length is the total that its lines state, else the last count seen in it. A log that begins in
    a later epoch (a resumed run) begins with as many full epochs behind it where the length is stated.
    Where the epoch goes back, a checkpoint was loaded: the count goes back with it.
    """

    def __init__(self, parse: Parser) -> None:
        self._parse = parse
        self._starts: dict[int, int] = {}  # epoch -> iterations before it, latest seen last
        self._epoch: int | None = None
        self._length = 0

    def __call__(self, line: str) -> Mark | None:
        """Read one line; see `hostagent.logs.format.LogFormat`."""
        mark = self._parse(line)
        if mark is None or mark.epoch is None:
            return mark
        if mark.completed == 0:
            return None  # a bar drawn anew: it may still be called by the last epoch's name
        start = self._start(mark.epoch, mark.total)
        if start + mark.completed > MAX_ITERATION:
            raise RejectedLineError("iteration out of range")
        self._epoch = mark.epoch
        self._length = mark.total or mark.completed
        self._starts.pop(mark.epoch, None)
        self._starts[mark.epoch] = start
        if len(self._starts) > KEPT:
            del self._starts[next(iter(self._starts))]
        # The run's own end is not told, only the epoch's.
        return replace(mark, completed=start + mark.completed, total=None, epoch=None)

    def remember(self) -> tuple[int, ...]:
        """Return the last epoch's length, and each epoch with its beginning, the last one last."""
        return (self._length, *chain.from_iterable(self._starts.items()))

    def recall(self, numbers: tuple[int, ...]) -> None:
        """Remember what `remember` returned. Raises ValueError where it cannot have."""
        if len(numbers) % 2 == 0 or len(numbers) > 1 + 2 * KEPT or max(numbers) > MAX_ITERATION:
            raise ValueError("no epochs")
        self._length = numbers[0]
        self._starts = dict(zip(numbers[1::2], numbers[2::2], strict=True))
        self._epoch = next(reversed(self._starts), None)

    def _start(self, epoch: int, total: int | None) -> int:
        if epoch in self._starts:
            return self._starts[epoch]
        if self._epoch is None or epoch < self._epoch:
            return epoch * (total or 0)
        return self._starts[self._epoch] + self._length + (epoch - self._epoch - 1) * (total or self._length)
