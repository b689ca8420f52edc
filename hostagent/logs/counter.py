"""How many iterations a job has completed since it started, from what its log claims.

The iteration's VALUE counts, never the number of lines: ranks repeat lines, and a line may stand for a
hundred iterations. A resumed run starts high, a rollback goes back, and a damaged line may say anything.
"""

from __future__ import annotations

from collections import Counter

from hostagent.logs.format import Mark

MAX_DURATIONS = 100
"""Most durations that one mark gives; a mark for more iterations gives this many times their mean."""


class IterationCounter:
    """Counts the completed iterations of one job from the marks of its log.

    The first mark counts for one log interval, that is, the distance to the second; until that is known,
    for one iteration. Steps of up to twice the interval, and steps that the time since the last mark has
    room for, count at once. Any other step (a jump, a rollback) is held until the next mark confirms it by
    going on from there, and is rejected when that goes on from the old value instead:

    - a confirmed jump ahead (another checkpoint was loaded) counts for one log interval, not for what it
      skipped;
    - a confirmed rollback takes back the iterations that were lost; one to before the job's first iteration
      here starts the count anew, for those were never counted.
    """

    def __init__(self) -> None:
        self.iterations = 0
        """Iterations completed since the job's start, rollbacks subtracted."""
        self.last_ns = 0
        """When the last mark that counted was seen (monotonic); 0 = none yet."""
        self.rejected: Counter[str] = Counter()
        """Marks that changed nothing, by reason."""
        self._total: int | None = None
        self._base = 0
        self._interval: int | None = None
        self._held: int | None = None

    def see(self, mark: Mark, now_ns: int) -> list[int]:
        """Count ``mark``, seen at ``now_ns``; return the durations (ns) of the iterations it completes.

        A duration is the framework's own figure where the line has one (the log may be buffered, and is
        read a little late), else the time since the mark before.
        """
        value, total = mark.completed, self._total
        if total is None:
            self._total, self._base = value, max(0, value - 1)
            return self._count(mark, value - self._base, now_ns)
        if value == total:
            return []
        since_ns = now_ns - self.last_ns
        if self._held is not None and self._goes_on(self._held, value, total):
            self._adopt(self._held, value, total)
            total = self._held
            since_ns = 0  # it covers the held mark's iterations too
        elif not self._plausible(mark, value - total, now_ns):
            if self._held not in (None, value):
                self.rejected["stray iteration"] += 1
            self._held = value
            return []
        elif self._held is not None:
            self.rejected["stray iteration"] += 1
        self._held = None
        if self._interval is None:
            self._interval = value - total
            self._base = min(self._base, max(0, total - self._interval))
        self._total = value
        return self._count(mark, value - total, now_ns, since_ns)

    def _plausible(self, mark: Mark, step: int, now_ns: int) -> bool:
        if step == 1 or (self._interval is not None and 0 < step <= 2 * self._interval):
            return True
        if step < 0 or mark.duration_ns is None:
            return False
        return step * mark.duration_ns <= 2 * (now_ns - self.last_ns)

    def _goes_on(self, held: int, value: int, total: int) -> bool:
        step = value - held
        return step > 0 and (step == 1 or step == held - total or step <= 2 * (self._interval or 0))

    def _adopt(self, held: int, value: int, total: int) -> None:
        step = value - held
        if held - total == step:
            # Evenly spaced: no jump, but the log interval, seen for the first time or changed.
            if self._interval is None:
                self._base = min(self._base, max(0, total - step))
            self._interval = step
        elif held > total:
            self._base += held - total - (self._interval or 1)
        elif held <= self._base:
            self._base = max(0, held - (self._interval or 1))

    def _count(self, mark: Mark, step: int, now_ns: int, since_ns: int = 0) -> list[int]:
        self.iterations = max(0, mark.completed - self._base)
        self.last_ns = now_ns
        duration = mark.duration_ns if mark.duration_ns is not None else since_ns // max(1, step)
        return [duration] * min(step, MAX_DURATIONS) if duration > 0 else []
