"""What a log format is, and the checks on numbers that all formats share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

MAX_ITERATION = 10**12
"""No training run counts further: at 1 ms an iteration that is 30 years."""

MAX_DURATION_NS = 24 * 3600 * 10**9
"""No single iteration takes longer than a day."""

NS_PER_MS = 1_000_000


class RejectedLineError(Exception):
    """An iteration line whose numbers cannot be true. ``reason`` is a fixed word or two, for counting."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Mark:
    """What an iteration line says.

    ``completed`` is how many iterations the model has behind it, counted as the framework counts (so a
    resumed run starts high); ``duration_ns`` the time per iteration that the line states, None where it
    states none.
    """

    completed: int
    duration_ns: int | None = None


@dataclass(frozen=True, slots=True)
class LogFormat:
    """One framework's log: its ``name`` in reports, and what it makes of a line.

    ``parse`` takes one line without its end and returns None for anything that is not an iteration line
    (evaluation lines are not). It raises RejectedLineError for one with absurd numbers. It runs on hostile
    input of up to `hostagent.logs.lines.MAX_LINE` characters, so its time must be linear in that.
    """

    name: str
    parse: Callable[[str], Mark | None]


def iteration(text: str) -> int:
    """Read an iteration number. Raises RejectedLineError unless it is one from 0 to MAX_ITERATION."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise RejectedLineError("iteration is not a number")
    # The length first: int() of a million digits takes long.
    if text.startswith("-") or len(digits) > 18 or int(digits) > MAX_ITERATION:
        raise RejectedLineError("iteration out of range")
    return int(digits)


def milliseconds(text: str) -> int:
    """Read milliseconds as nanoseconds. Raises RejectedLineError unless above 0 and at most a day."""
    try:
        value = float(text[:40])
    except ValueError:
        raise RejectedLineError("duration is not a number") from None
    if not (math.isfinite(value) and 0 < value * NS_PER_MS <= MAX_DURATION_NS):
        raise RejectedLineError("duration out of range")
    return int(value * NS_PER_MS)
