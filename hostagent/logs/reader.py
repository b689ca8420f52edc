"""One log file as a stream of iteration marks: tail, lines, format."""

from __future__ import annotations

from collections import Counter

from hostagent.logs import FORMATS
from hostagent.logs.format import LogFormat, Mark, RejectedLineError
from hostagent.logs.lines import LineSplitter
from hostagent.logs.tail import Identity, Tail
from hostagent.logs.watch import Watcher


class LogReader:
    """Reads the iteration marks out of the log at ``path``.

    See `hostagent.logs.tail.Tail` for what that may be. The format is that of the first line which one of
    FORMATS knows, and stays: a framework does not change its log in mid-run, and a line that happens to
    look like another's must not count.
    """

    def __init__(self, path: str, start: int = 0, watcher: Watcher | None = None) -> None:
        """Read ``path`` from byte ``start`` on; ``watcher`` tells when there may be something to read."""
        self._tail = Tail(path, start, watcher)
        self._splitter = LineSplitter()
        self._format: LogFormat | None = None
        self.rejected: Counter[str] = Counter()
        """Lines that were iteration lines and cannot be true, by reason."""

    @property
    def format(self) -> str:
        """Name of the log's format; empty as long as no iteration line was seen."""
        return self._format.name if self._format else ""

    @property
    def identity(self) -> Identity | None:
        """Which file is open."""
        return self._tail.identity

    @property
    def path(self) -> str:
        """Where the log is read; may be set to another name of the same file."""
        return self._tail.path

    @path.setter
    def path(self, path: str) -> None:
        self._tail.path = path

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

    def read(self) -> list[Mark]:
        """Return the marks in what the log has gained, oldest first; at most one chunk of it at a time."""
        piece = self._tail.read()
        if piece.restarted:
            self._splitter.reset()
        if not piece.data:
            return []
        return [mark for line in self._splitter.feed(piece.data) if (mark := self._parse(line)) is not None]

    def _parse(self, line: str) -> Mark | None:
        for known in (self._format,) if self._format else FORMATS:
            try:
                mark = known.parse(line)
            except RejectedLineError as error:
                self.rejected[error.reason] += 1
                return None
            if mark is not None:
                self._format = known
                return mark
        return None
