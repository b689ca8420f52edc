"""What a log format is, and the checks on numbers that all formats share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

MAX_ITERATION = 10**12
"""No training run counts further: at 1 ms an iteration that is 30 years."""

MAX_DURATION_NS = 24 * 3600 * 10**9
"""No single iteration takes longer than a day."""

NS_PER_MS = 1_000_000

ANYBODYS, KNOWN, USERS = 0, 1, 2
"""Ranks of formats: what anybody may draw, a framework's own, and what the user has named."""

START = r"^(?:\[[^\]\s]{1,64}\](?:<std(?:out|err)>)?:|\d{1,9}:|[\w.-]{1,64}-\d{1,9}:)? *"
"""Beginning of a line, with the tag that launchers put there: ``[default7]:`` (torchrun), ``[1,0]<stdout>:``
(mpirun), ``7:`` (srun), ``worker-0:`` (DeepSpeed's)."""


class RejectedLineError(Exception):
    """An iteration line whose numbers cannot be true. ``reason`` is a fixed word or two, for counting."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Mark:
    """What an iteration line says."""

    completed: int
    """Iterations that the model has behind it, as the framework counts (a resumed run starts high)."""
    duration_ns: int | None = None
    """Time per iteration since the line before, by the line itself; None where it states none."""
    total: int | None = None
    """Where the count is to end, where the line says so."""
    epoch: int | None = None
    """The epoch, from 0, where ``completed`` and ``total`` start anew with each; None where they do not."""
    pace_ns: int | None = None
    """Time per iteration averaged over longer: good for judging what can be, not for timing."""
    first: int | None = None
    """The count with which this run began, where its teller knows."""
    anew: bool = False
    """What was counted before was something else, such as a progress bar of no training."""


Parser = Callable[[str], Mark | None]


@runtime_checkable
class Remembering(Protocol):
    """A parser of one log that remembers something of earlier lines, and can be told it again."""

    def __call__(self, line: str) -> Mark | None:
        """Read one line."""

    def remember(self) -> tuple[int, ...]:
        """Return what it remembers, as numbers from 0."""

    def recall(self, numbers: tuple[int, ...]) -> None:
        """Remember what `remember` returned. Raises ValueError where it cannot have."""


@dataclass(frozen=True, slots=True)
class LogFormat:
    """One framework's log: its ``name`` in reports, and what it makes of a line.

    ``parse`` takes one line without its end and returns None for anything that is not an iteration line
    (evaluation lines are not). It raises RejectedLineError for one with absurd numbers. It runs on hostile
    input of up to `hostagent.logs.lines.MAX_LINE` characters, so its time must be linear in that. It is a
    pure function of the line.

    ``follow`` makes the parser for one whole log out of it, where a line's meaning depends on earlier ones
    (an epoch's count starts anew). ``supersedes`` names formats whose lines stand in the same log and say
    less: the first line of this format replaces them. So does that of a format of a higher ``rank``.
    """

    name: str
    parse: Parser
    follow: Callable[[], Parser] | None = None
    supersedes: frozenset[str] = frozenset()
    rank: int = KNOWN

    def open(self) -> Parser:
        """Return the parser for one log, from its beginning on."""
        return self.follow() if self.follow else self.parse


def iteration(text: str) -> int:
    """Read an iteration number. Raises RejectedLineError unless it is one from 0 to MAX_ITERATION."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise RejectedLineError("iteration is not a number")
    # The length first: int() of a million digits takes long.
    if text.startswith("-") or len(digits) > 18 or int(digits) > MAX_ITERATION:
        raise RejectedLineError("iteration out of range")
    return int(digits)


def whole(text: str | None) -> int | None:
    """Read a run's total; None where there is none (``?``, ``--``, ``infinity``) or it is no whole number."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= 13):
        return None
    return int(text) or None


def milliseconds(text: str) -> int:
    """Read milliseconds as nanoseconds. Raises RejectedLineError unless above 0 and at most a day."""
    return _duration(text, NS_PER_MS)


def seconds(text: str) -> int:
    """Read seconds as nanoseconds. Raises RejectedLineError unless above 0 and at most a day."""
    return _duration(text, 10**9)


def _duration(text: str, unit_ns: int) -> int:
    try:
        value = float(text[:40])
    except ValueError:
        raise RejectedLineError("duration is not a number") from None
    if not (math.isfinite(value) and 0 < value * unit_ns <= MAX_DURATION_NS):
        raise RejectedLineError("duration out of range")
    return max(1, int(value * unit_ns))
