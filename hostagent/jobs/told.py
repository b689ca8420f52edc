"""Progress that the training code tells itself, as a log that is never read: see `hostagent.report`."""

from __future__ import annotations

from collections import Counter, deque

from hostagent.logs.format import USERS, Mark, RejectedLineError, iteration
from hostagent.logs.reader import Read

MAX_WAITING = 1024


class Told:
    """What a job's ranks have told and the job has not taken yet."""

    kind = "report"
    rank = USERS
    format = "report"
    behind = False
    failed = False
    lines_too_long = 0

    def __init__(self) -> None:
        self.rejected: Counter[str] = Counter()
        """What could not be true, by reason."""
        self._waiting: deque[Mark] = deque(maxlen=MAX_WAITING)

    def tell(self, first: str, now: str) -> None:
        """Take in a rank's word: its count at its first word, and its count now."""
        try:
            completed, begun = iteration(now), iteration(first)
        except RejectedLineError as error:
            self.rejected[error.reason] += 1
            return
        if completed == 0:
            return
        self._waiting.append(Mark(completed, first=max(1, begun)))

    def read(self, now_ns: int) -> Read:
        """Return the marks told since the last read."""
        marks = list(self._waiting)
        self._waiting.clear()
        return Read(marks, now_ns, live=len(marks) <= 1)

    def close(self) -> None:
        """Nothing is open."""
