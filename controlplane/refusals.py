"""Whose words were refused of late, and why: for those who run the fabric to see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

KEEP = 64
"""Most hosts and peers that are remembered; the one that was refused longest ago goes first."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What was refused of one host, or of a peer that is none."""

    count: int
    """Since it was first refused, or forgotten."""
    reason: str
    """Why, the last time."""
    last_ns: int


class Refusals:
    """The last hosts and peers of which something was refused; the caller tells the time."""

    def __init__(self) -> None:
        self._last: dict[str, Refusal] = {}

    @property
    def last(self) -> Mapping[str, Refusal]:
        """Every host or peer that is remembered, the latest last."""
        return MappingProxyType(self._last)

    def note(self, who: str, why: str, now_ns: int) -> None:
        """Remember that something ``who`` said was refused."""
        before = self._last.pop(who, None)
        self._last[who] = Refusal(before.count + 1 if before else 1, why, now_ns)
        while len(self._last) > KEEP:
            del self._last[next(iter(self._last))]
