"""Which format a log has, and what its lines say by it."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from hostagent.logs.format import LogFormat, Mark, Parser, RejectedLineError, Remembering

PAST_S = 2 * 3600
"""A line's time stamp may be so much earlier than the lines' before: ranks interleave, and summer ends."""

SET_BACK = 10
"""After so many such lines in a row the clock has been set back, and those that follow count."""

_STAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_STAMPED = 120
"""A time stamp stands within so many characters from a line's beginning."""


class Recogniser:
    """Reads the iteration marks out of one log's lines.

    The format is that of the first line which one of ``formats`` knows, and stays: a framework does not
    change its log in mid-run, and a line that happens to look like another's must not count. Only a format
    that supersedes it or has a higher rank takes its place.

    An iteration line that is dated before those that came earlier, or before the run can have begun, is an
    old one or a forged one, and is rejected; but where more than SET_BACK of the former follow one another,
    the clock has been set back. Times in the log are in no known time zone, so nothing else is made of them.
    """

    def __init__(self, formats: Sequence[LogFormat], since_s: float | None = None) -> None:
        """``since_s``: no line was written before that (Unix time, whatever the log's time zone)."""
        self._since_s = since_s
        self._latest_s: float | None = None
        self._back = 0  # lines of the past in a row
        self._previous_s: float | None = None
        self._parsers: list[tuple[LogFormat, Parser]] = [(known, known.open()) for known in formats]
        self._format: LogFormat | None = None
        self.rejected: Counter[str] = Counter()
        """Lines that were iteration lines and cannot be true, by reason."""

    @property
    def rank(self) -> int:
        """Rank of the log's format; below all where there is none."""
        return self._format.rank if self._format else -1

    @property
    def format(self) -> str:
        """Name of the log's format; empty as long as no iteration line was seen."""
        return self._format.name if self._format else ""

    def remember(self) -> tuple[str, tuple[int, ...]]:
        """Return the format's name, and what its parser remembers of earlier lines."""
        parser = next((parse for known, parse in self._parsers if known is self._format), None)
        return self.format, parser.remember() if isinstance(parser, Remembering) else ()

    def recall(self, name: str, numbers: tuple[int, ...]) -> None:
        """Go on with what `remember` returned. A format that is not known any more is found out again."""
        for known, parser in list(self._parsers):
            if known.name == name:
                self._settle(known)
                if isinstance(parser, Remembering):
                    with contextlib.suppress(ValueError):
                        parser.recall(numbers)

    def see(self, line: str) -> Mark | None:
        """Return what ``line`` says, None where it is no iteration line or cannot be true."""
        for known, parse in self._parsers:
            try:
                mark = parse(line)
            except RejectedLineError as error:
                self.rejected[error.reason] += 1
                return None
            if mark is not None:
                if self._is_past(line):
                    self.rejected["time in the past"] += 1
                    return None
                return replace(mark, anew=True) if self._settle(known) else mark
        return None

    def _is_past(self, line: str) -> bool:
        found = _STAMP.search(line, 0, _STAMPED)
        if found is None:
            return False
        try:
            stamp_s = datetime.fromisoformat(found[0]).replace(tzinfo=UTC).timestamp()
        except ValueError:
            return False
        if self._since_s is not None and stamp_s < self._since_s - PAST_S:
            return True
        if self._latest_s is not None and stamp_s < self._latest_s - PAST_S:
            self._back += 1
            if self._back <= SET_BACK:
                return True
            self._latest_s = stamp_s
        self._back = 0
        # One line that is dated in the future must not make all after it lines of the past: it takes two.
        if self._previous_s is not None:
            self._latest_s = max(self._latest_s or 0.0, min(self._previous_s, stamp_s))
        self._previous_s = stamp_s
        return False

    def _settle(self, known: LogFormat) -> bool:
        """Take ``known`` for the format; say whether it replaces one of a lower rank."""
        if known is self._format:
            return False
        before, self._format = self._format, known
        self._parsers = [
            (other, parse)
            for other, parse in self._parsers
            if other is known or known.name in other.supersedes or other.rank > known.rank
        ]
        return before is not None and before.rank < known.rank
