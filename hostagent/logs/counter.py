"""How many iterations a job has completed since it started, from what its log claims.

The iteration's VALUE counts, never the number of lines: ranks repeat lines, and a line may stand for a
hundred iterations. A resumed run starts high, a rollback goes back, and a damaged line may say anything.
"""

from __future__ import annotations

from collections import Counter, deque
from statistics import median
from typing import Annotated, NamedTuple

from pydantic import Field

from hostagent.logs.format import MAX_DURATION_NS, MAX_ITERATION, Mark

MAX_DURATIONS = 100
"""Most durations that one mark gives; a mark for more iterations gives this many times their mean."""

RECENT = 8
"""So many marks are remembered to judge how regular the iterations are."""

RISING = 2
"""So many held marks in a row, each above the last, are believed whatever their distances."""


MAX_TIME_NS = (1 << 63) - 1
"""As much as any iterations together are taken to have taken."""

_Count = Annotated[int, Field(ge=0, le=MAX_ITERATION)]
_Time = Annotated[int, Field(ge=0, le=MAX_TIME_NS)]


class CounterState(NamedTuple):
    """All that an `IterationCounter` knows, to go on later."""

    iterations: _Count
    last_ns: _Time
    value: _Count | None
    total: _Time | None
    base: _Count
    interval: Annotated[int, Field(gt=0, le=MAX_ITERATION)] | None
    held: _Count | None
    leap: Annotated[int, Field(ge=-MAX_ITERATION, le=MAX_ITERATION)] | None
    rising: _Count
    accounted_ns: _Time
    recent: tuple[tuple[_Count, Annotated[int, Field(gt=0, le=MAX_DURATION_NS)]], ...]


class Estimate(NamedTuple):
    """What is believed to have been completed since the last mark, and by how much that may be wrong."""

    iterations: int
    error: int


class IterationCounter:
    """Counts the completed iterations of one job from the marks of its log.

    The first mark counts for one log interval, that is, the distance to the second; until that is known,
    for one iteration. Steps of up to twice the interval, and steps that the time since the last mark has
    room for, count at once. Any other step (a jump, a rollback) is held until the next mark confirms it by
    going on from there, and is rejected when that goes on from the old value instead:

    - a confirmed step ahead counts in full where the time since the job's start has room for it (lines were
      lost), else for one log interval, not for what it skipped (another checkpoint was loaded);
    - a confirmed rollback takes back the iterations that were lost; one to before the job's first iteration
      here starts the count anew, for those were never counted.
    """

    def __init__(self, started_ns: int = 0) -> None:
        """``started_ns`` is when the job started (monotonic)."""
        self.iterations = 0
        """Iterations completed since the job's start, rollbacks subtracted."""
        self.last_ns = 0
        """When the last mark that counted was written, as far as is known (monotonic); 0 = none yet."""
        self.value: int | None = None
        """The iteration of the last mark that counted."""
        self.total: int | None = None
        """Where the framework's count is to end, if the log says so."""
        self.adopted: int | None = None
        """The value that was held, and that the last mark seen has confirmed; None where it has not."""
        self.rejected: Counter[str] = Counter()
        """Marks that changed nothing, by reason."""
        self._started_ns = started_ns
        self._base = 0
        self._interval: int | None = None
        self._held: int | None = None
        self._leap: int | None = None  # from one held value to the next
        self._rising = 0
        self._accounted_ns = 0  # what the counted iterations took by the log's own words
        self._live = False
        self._recent: deque[tuple[int, int]] = deque(maxlen=RECENT)  # step, ns per iteration

    def state(self) -> CounterState:
        """Return all that it knows, but for what was rejected."""
        return CounterState(
            self.iterations,
            self.last_ns,
            self.value,
            self.total,
            self._base,
            self._interval,
            self._held,
            self._leap,
            self._rising,
            self._accounted_ns,
            tuple(self._recent),
        )

    def go_on(self, state: CounterState) -> None:
        """Go on from what `state` returned."""
        self.iterations, self.last_ns, self.value, self.total = state[:4]
        self._base, self._interval, self._held, self._leap, self._rising, self._accounted_ns = state[4:10]
        self._recent.extend(state.recent)

    def see(self, mark: Mark, now_ns: int, *, live: bool = True) -> list[int]:
        """Count ``mark``, written at ``now_ns``; return the durations (ns) of the iterations it completes.

        A duration is the framework's own figure where the line has one (the log may be buffered, and is
        read a little late), else the time since the mark before. That says nothing where the log is read
        long after it was written, which is what ``live`` false means.
        """
        self.adopted = None
        if not 0 <= mark.completed <= MAX_ITERATION:
            self.rejected["iteration out of range"] += 1
            return []
        if mark.anew:
            self._forget()
        value, last = mark.completed, self.value
        self.total = mark.total or self.total
        timed, self._live = live and self._live, live
        if last is None:
            return self._begin(mark, now_ns)
        if value == last:
            if self._lags(self._held):
                self._held = None
            return []
        since_ns = now_ns - self.last_ns if timed else 0
        plausible = self._plausible(mark, value - last, now_ns - self.last_ns)
        held = self._held
        if held is not None and not (plausible and held < last) and self._goes_on(held, value, last, mark):
            self._adopt(mark, held, value, last, now_ns)
            self.adopted = last = held
            since_ns = 0  # it covers the held mark's iterations too
        elif not plausible:
            self._hold(value)
            return []
        elif held is not None and not self._lags(held):
            self.rejected["stray iteration"] += 1
        self._held, self._leap, self._rising = None, None, 0
        if self._interval is None:
            self._interval = value - last
            self._base = min(self._base, max(0, last - self._interval))
        self.value = value
        return self._count(mark, value - last, now_ns, since_ns)

    def _forget(self) -> None:
        """Begin anew: what was counted was no training. What was rejected stays told."""
        self.iterations = self.last_ns = self._base = self._rising = self._accounted_ns = 0
        self.value = self.total = self._interval = self._held = self._leap = None
        self._recent.clear()

    def settle(self) -> None:
        """No more marks will come: decide on the one that is held."""
        self.adopted = None
        if self._held is None or self.value is None:
            return
        if self._interval is None and self._held > self.value:
            self._base = min(self._base, max(0, self.value - (self._held - self.value)))
            self.value = self._held
            self.iterations = self.value - self._base
        elif not self._lags(self._held):
            self.rejected["unconfirmed iteration"] += 1
        self._held = None

    def estimate(self, now_ns: int) -> Estimate:
        """Return what a log that tells only every so many iterations hides at ``now_ns``.

        Never as much as the next line would say; the error is the spread of the last lines' times, and all of
        it where there are none or the next line is overdue.
        """
        interval = min((step for step, _ in self._recent), default=0)
        if interval <= 1:
            return Estimate(0, 0)
        paces = [pace for _, pace in self._recent]
        pace = median(paces)
        waited_ns = now_ns - self.last_ns
        hidden = max(0, min(interval - 1, int(waited_ns // pace)))
        if len(paces) < 2 or waited_ns > 1.5 * pace * interval:
            return Estimate(hidden, hidden)
        spread = (max(paces) - min(paces)) / pace
        return Estimate(hidden, min(hidden, int(hidden * spread) + 1))

    @property
    def gap_ns(self) -> int:
        """The longest of the last times from mark to mark; 0 where none is known."""
        return max((step * pace for step, pace in self._recent), default=0)

    def _begin(self, mark: Mark, now_ns: int) -> list[int]:
        if mark.completed == 0:
            return []  # a bar that has been drawn and not begun: a resumed run's leaps from there
        first = mark.completed if mark.first is None else min(mark.first, mark.completed)
        self.value, self._base = mark.completed, max(0, first - 1)
        if mark.first is not None:
            self._interval = 1
        return self._count(mark, mark.completed - self._base, now_ns, 0, begins=True)

    def _plausible(self, mark: Mark, step: int, since_ns: int) -> bool:
        if step == 1 or (self._interval is not None and 0 < step <= 2 * self._interval):
            return True
        per_ns = mark.duration_ns or mark.pace_ns
        return step > 0 and per_ns is not None and step * per_ns <= 2 * since_ns

    def _lags(self, held: int | None) -> bool:
        """Say whether ``held`` is what a rank a little behind the others would say."""
        return (
            held is not None and self.value is not None and 0 < self.value - held <= 3 * (self._interval or 1)
        )

    def _hold(self, value: int) -> None:
        held = self._held
        if held is not None and held != value:
            if not self._lags(held):
                self.rejected["stray iteration"] += 1
            self._leap = value - held
            self._rising = self._rising + 1 if value > held else 0
        self._held = value

    def _goes_on(self, held: int, value: int, last: int, mark: Mark) -> bool:
        step = value - held
        if step <= 0:
            return False
        if step == 1 or step == self._leap or step <= 2 * (self._interval or 0) or self._rising >= RISING:
            return True
        if held > last and mark.total is not None and value <= mark.total == self.total:
            return mark.pace_ns is not None or self._even(held - last, step)
        return self._interval is None and self._even(held - last, step)

    @staticmethod
    def _even(one: int, other: int) -> bool:
        return 0 < one <= 2 * other and other <= 2 * one

    def _adopt(self, mark: Mark, held: int, value: int, last: int, now_ns: int) -> None:
        step = value - held
        if held - last == step or (self._interval is None and self._even(held - last, step)):
            # Evenly spaced: no jump, but the log interval, seen for the first time or changed.
            if self._interval is None:
                self._base = min(self._base, max(0, last - step))
            self._interval = step
        elif held > last:
            per_ns = mark.duration_ns or mark.pace_ns
            room_ns = now_ns - self._started_ns - self._accounted_ns
            if per_ns is None or (held - last) * per_ns > room_ns:
                self._base = max(0, self._base + held - last - (self._interval or step))
            elif self._interval is None:
                self._interval = held - last
                self._base = min(self._base, max(0, last - self._interval))
        elif held <= self._base:
            self._base = max(0, held - (self._interval or 1))
        self._interval = self._interval or step

    def _count(self, mark: Mark, step: int, now_ns: int, since_ns: int, *, begins: bool = False) -> list[int]:
        self.iterations = max(0, mark.completed - self._base)
        self.last_ns = now_ns
        duration_ns = mark.duration_ns if mark.duration_ns is not None else since_ns // max(1, step)
        pace_ns = min(duration_ns or mark.pace_ns or 0, MAX_DURATION_NS)  # the clock's word may be any
        if pace_ns > 0:
            self._accounted_ns = min(self._accounted_ns + step * pace_ns, MAX_TIME_NS)
            if not begins:
                self._recent.append((step, pace_ns))
        return [duration_ns] * min(step, MAX_DURATIONS) if duration_ns > 0 else []
