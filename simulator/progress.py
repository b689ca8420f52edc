"""R as a ranking sees it: the plain quotient, or one that forgets, or one that trusts new jobs at first."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(slots=True)
class Account:
    """What a job has done, with what happened ``half_life`` seconds ago counting half (None: all counts).

    ``optimism`` seconds at R = 1 are taken to have gone before: a bounded credit, so that a job that has just
    come, with an R of 0, does not at once go before all others.
    """

    start: float
    half_life: float | None = None
    optimism: float = 0.0
    _counted: int = field(default=0, init=False)
    _until: float = field(default=0.0, init=False)
    _done: float = field(default=0.0, init=False)
    _elapsed: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._until = self.start

    def rate(self, done: int, ideal_s: float, now: float) -> float:
        """Return R at ``now``, which never goes back, after ``done`` iterations of ideally ``ideal_s``."""
        length = now - self._until
        kept = 1.0 if self.half_life is None else 0.5 ** (length / self.half_life)
        if self.half_life is not None:
            # The integral of the weight over the time since the last call.
            length = (1 - kept) * self.half_life / math.log(2)
        self._done = self._done * kept + done - self._counted
        self._elapsed = self._elapsed * kept + length
        self._counted, self._until = done, now
        whole = self._elapsed + self.optimism
        return (self._done * ideal_s + self.optimism) / whole if whole > 0 else 0.0
