"""Bursts out of a counter of bytes that is looked at now and then."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from statistics import median

from hostagent.timing import Burst

GAP_NS = 20_000_000
"""A pause of so long ends a burst."""

NOTED = 32
"""Looks at bursts by which the resolution is judged."""

KEEP = 512
"""Bursts that are kept."""


@dataclass(slots=True)
class _Begun:
    """A burst that goes on."""

    looked_ns: int
    """The last look before it."""
    first_end_ns: int
    """When the counter had grown last, at the first look."""
    first: int
    """Bytes at the first look."""
    total: int
    looks: int = 1


class BurstFinder:
    """Finds the bursts in which a counter grows.

    A look tells how far the counter is and how long ago it last grew (the kernel knows that to the
    millisecond), so a burst's end is known well however rare the looks are. When it began is known only to
    lie between two looks; the bytes of that time at the highest rate seen so far tell it better.
    """

    def __init__(self) -> None:
        self.bursts: deque[Burst] = deque(maxlen=KEEP)
        """Those that are over, oldest first."""
        self._unsure: deque[int] = deque(maxlen=NOTED)
        self._looked_ns: int | None = None
        self._rate = 0.0  # highest rate seen, bytes per ns
        self._begun: _Begun | None = None
        self._end_ns = 0

    @property
    def resolution_ns(self) -> int:
        """How exactly the bursts of late are known, most of the time."""
        return int(median(self._unsure)) if self._unsure else 0

    def see(self, now_ns: int, grown: int, quiet_ns: int = 0) -> None:
        """Take in a look at ``now_ns``: the counter has ``grown`` so much, the last time ``quiet_ns`` ago."""
        looked_ns, self._looked_ns = self._looked_ns, now_ns
        if looked_ns is None or now_ns <= looked_ns:
            return
        if self._begun is not None and (looked_ns if grown > 0 else now_ns) - self._end_ns >= GAP_NS:
            self._close(self._begun)
        if grown <= 0:
            return
        self._end_ns = max(looked_ns, now_ns - quiet_ns)
        if self._begun is None:
            self._rate = max(self._rate, grown / max(1, self._end_ns - looked_ns))
            self._begun = _Begun(looked_ns, self._end_ns, grown, grown)
        else:
            self._rate = max(self._rate, grown / (now_ns - looked_ns))
            self._begun.total += grown
            self._begun.looks += 1
            self._unsure.append(now_ns - looked_ns)

    def _close(self, begun: _Begun) -> None:
        start_ns = max(begun.looked_ns, begun.first_end_ns - round(begun.first / self._rate))
        self.bursts.append(Burst(start_ns, self._end_ns, begun.total))
        if begun.looks == 1:
            self._unsure.append(self._end_ns - start_ns)
        self._begun = None
