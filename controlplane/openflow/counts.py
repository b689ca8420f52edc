"""How many flow entries a switch should hold where there are too many to read them often. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from controlplane.openflow.entries import BANK, FLOW, GROUP, ROUTE
from controlplane.southbound.diff import Change
from controlplane.southbound.tables import Key

COUNTED = frozenset({BANK, FLOW, GROUP, ROUTE})
"""The tables whose entries are counted: a row's are of one number there, whatever its call."""


class Counts:
    """The number of entries in ``COUNTED``, kept write by write from a read-back on."""

    def __init__(self) -> None:
        self.expected = 0
        self._partial: dict[tuple[str, Key], int] = {}
        """Row -> entries that are there, where it is not what its being held or not makes one think."""

    def read(self, entries: int, partial: Mapping[tuple[str, Key], int]) -> None:
        """Start from a read-back: ``entries`` of anybody's; ``partial``: those of rows that are not whole."""
        self.expected = entries
        self._partial = dict(partial)

    def note(self, change: Change, entries: int, refused: int) -> None:
        """Account for the answer to ``change``, of a row of so many entries, ``refused`` of them."""
        if not entries:
            return
        row = change[:2]
        new = change.call is not None and not change.replace
        was = self._partial.pop(row, 0 if new else entries)
        if not refused:
            now = 0 if change.call is None else entries
        else:
            self._partial[row] = now = max(was, entries - refused) if new else was
        self.expected += now - was
