"""What the agent makes of a log that is at rest: for an engineer who wonders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hostagent.logs import FORMATS
from hostagent.logs.counter import IterationCounter
from hostagent.logs.format import LogFormat
from hostagent.logs.lines import LineSplitter
from hostagent.logs.recogniser import Recogniser
from hostagent.logs.tail import is_compressed
from leveller.errors import UserError

PIECE = 65_536


@dataclass(slots=True)
class LogSummary:
    """What a log says. ``format`` is None where no line of it is known."""

    format: str | None = None
    iterations: list[tuple[int, int]] = field(default_factory=list)
    """Line, from 1, and iteration, for each line that brought the count on or back."""
    rejected: Counter[str] = field(default_factory=Counter)
    """Lines that changed nothing though they look like iterations, by reason."""

    @property
    def last(self) -> int | None:
        """The last iteration; None where there was none."""
        return self.iterations[-1][1] if self.iterations else None

    def as_json(self) -> dict[str, object]:
        """Return it as ``leveller agent read --json`` prints it."""
        return {
            "format": self.format,
            "iterations": [list(pair) for pair in self.iterations],
            "last": self.last,
            "rejected": dict(sorted(self.rejected.items())),
        }


def read(path: Path, formats: Sequence[LogFormat] = FORMATS) -> LogSummary:
    """Read the whole log at ``path``. Raises UserError where it cannot be read.

    Nobody knows when its lines were written, so the counter sees no time pass.
    """
    recogniser, counter, summary = Recogniser(formats), IterationCounter(), LogSummary()
    splitter, held = LineSplitter(), 0

    def note(line: int) -> None:
        if counter.adopted is not None:
            summary.iterations.append((held, counter.adopted))
        if counter.value is not None and (
            not summary.iterations or summary.iterations[-1][1] != counter.value
        ):
            summary.iterations.append((line, counter.value))

    for number, piece in _pieces(path):
        for text in splitter.feed(piece):
            mark = recogniser.see(text)
            if mark is not None:
                if mark.anew:
                    summary.iterations.clear()
                counter.see(mark, 0, live=False)
                note(number)
                held = number
    counter.settle()
    note(held)
    summary.format = recogniser.format or None
    summary.rejected = recogniser.rejected + counter.rejected
    if splitter.too_long:
        summary.rejected["line too long"] = splitter.too_long
    return summary


def _pieces(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the file's lines with their numbers, long ones in pieces, the last with its end."""
    try:
        with path.open("rb") as file:
            if is_compressed(file.read(6)):
                raise UserError(f"{path} is compressed", "decompress it first")
            file.seek(0)
            number = 1
            while piece := file.readline(PIECE):
                yield number, piece
                number += piece.endswith(b"\n")
            yield number, b"\n"
    except OSError as error:
        raise UserError(
            f"{path} cannot be read ({error.strerror})", "give the log of a training job"
        ) from None
