"""One log file as a stream of iteration marks: tail, lines, format."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from hostagent.logs.format import LogFormat, Mark
from hostagent.logs.lines import LineSplitter
from hostagent.logs.place import Place
from hostagent.logs.recogniser import Recogniser
from hostagent.logs.tail import Bookmark, Identity, Tail

_TRACEBACK = "Traceback (most recent call last)"


class Read(NamedTuple):
    """What a read gave: marks, oldest first, and when their lines were written (monotonic ns).

    Where they are not ``live`` they may have been written long before: the time is that of the last of them.
    """

    marks: list[Mark]
    written_ns: int
    live: bool


class LogReader:
    """Reads the iteration marks out of one log. ``kind`` says how it was found.

    See `hostagent.logs.tail.Tail` for what that may be, and `hostagent.logs.recogniser.Recogniser` for how
    its format is told.
    """

    def __init__(
        self, kind: str, tail: Tail, formats: Sequence[LogFormat], since_s: float | None = None
    ) -> None:
        """``since_s`` is as `hostagent.logs.recogniser.Recogniser` takes it."""
        self.kind = kind
        self._tail = tail
        self._splitter = LineSplitter()
        self._recogniser = Recogniser(formats, since_s)
        self.failed = False
        """The last thing in the log is a Python traceback: no iteration came after it."""

    @property
    def format(self) -> str:
        """Name of the log's format; empty as long as no iteration line was seen."""
        return self._recogniser.format

    @property
    def rank(self) -> int:
        """Rank of the log's format; below all where there is none."""
        return self._recogniser.rank

    @property
    def identity(self) -> Identity | None:
        """Which file is open."""
        return self._tail.identity

    @property
    def place(self) -> Place:
        """Where the log is read; may be set to another place of the same file."""
        return self._tail.place

    @place.setter
    def place(self, place: Place) -> None:
        self._tail.place = place

    def bookmark(self) -> Bookmark | None:
        """Return where the first line begins that has not been read; None where no file is open."""
        return self._tail.bookmark(self._splitter.unfinished)

    def remember(self) -> tuple[str, tuple[int, ...]]:
        """Return the format, and what its parser remembers of earlier lines."""
        return self._recogniser.remember()

    def recall(self, known: str, parser: tuple[int, ...]) -> None:
        """Go on with what `remember` returned."""
        self._recogniser.recall(known, parser)

    @property
    def rejected(self) -> Counter[str]:
        """Lines that were iteration lines and cannot be true, by reason."""
        return self._recogniser.rejected

    @property
    def lines_too_long(self) -> int:
        """Lines that were dropped for their length."""
        return self._splitter.too_long

    @property
    def behind(self) -> bool:
        """There is more to read than one read takes."""
        return self._tail.behind

    def close(self) -> None:
        """Close the file."""
        self._tail.close()

    def read(self, now_ns: int) -> Read:
        """Return the marks in what the log has gained, oldest first; at most one chunk of it at a time."""
        late = self._tail.behind or self._tail.identity is None
        piece = self._tail.read()
        if piece.restarted:
            self._splitter.reset()
        if not piece.data:
            return Read([], now_ns, live=True)
        live = not (late or self._tail.behind or piece.restarted)
        lines = self._splitter.feed(piece.data)
        marks = []
        for line in lines:
            mark = self._recogniser.see(line)
            if mark is not None:
                marks.append(mark)
                self.failed = False
            elif _TRACEBACK in line:
                self.failed = True
        return Read(marks, now_ns if live else self._written_ns(now_ns), live)

    def _written_ns(self, now_ns: int) -> int:
        """Return when the file was last written to, by the monotonic clock."""
        age_ns = time.time_ns() - self._tail.modified_ns
        return now_ns - max(0, age_ns)
