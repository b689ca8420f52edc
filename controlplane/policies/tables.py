"""Tables of numbers, and how the loops over them are run: in plain Python, or compiled.

The loops are plain ones, so that numba compiles the same text for large fabrics
(``pip install 'leveller[fast]'``): a table is a list in plain Python, an array of 32-bit integers where the
loops are compiled. A relation between rows and columns (groups and links, say) is kept as two tables: the
columns of row i are ``columns[starts[i]:starts[i + 1]]``. None of the loops allocates: results go into tables
that the caller made with `Tables`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

COMPILED_FROM = 50_000
"""From so many pairs of group and link on it pays to load numba, where it is there, and compile the loops."""

Table = Any
"""A list of integers, or an array of them."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Makes tables and runs loops on them, in plain Python or compiled."""

    compiled: bool

    @classmethod
    def for_size(cls, size: int) -> Tables:
        """Return what suits ``size`` pairs of group and link."""
        return cls(size >= COMPILED_FROM and _njit() is not None)

    def of(self, values: Iterable[int], size: int) -> Table:
        """Return a table of the first ``size`` of ``values``."""
        if not self.compiled:
            return list(islice(values, size))
        # Imported here and below: numpy takes a while to load, and most commands and policies do without.
        import numpy as np

        return np.fromiter(values, np.int32, size)

    def filled(self, size: int, value: int = 0) -> Table:
        """Return a table of ``size`` times ``value``."""
        if not self.compiled:
            return [value] * size
        import numpy as np

        return np.full(size, value, np.int32) if value else np.zeros(size, np.int32)

    def rows(self, count: int, size: int) -> Table:
        """Return a table of ``count`` tables of ``size`` zeros."""
        if not self.compiled:
            return [[0] * size for _ in range(count)]
        import numpy as np

        return np.zeros((count, size), np.int32)

    def counting(self, size: int) -> Table:
        """Return the table 0, 1, ... of ``size`` numbers."""
        if not self.compiled:
            return list(range(size))
        import numpy as np

        return np.arange(size, dtype=np.int32)

    def taken(self, table: Table, places: Table) -> Table:
        """Return what ``table`` has at each of ``places``."""
        return table[places] if self.compiled else list(map(table.__getitem__, places))

    def equal(self, one: Table, other: Table) -> bool:
        """Return whether two tables of one size have the same numbers."""
        return bool((one == other).all()) if self.compiled else one == other

    def row_of(self, entries: Table, starts: Table) -> Sequence[int]:
        """Return which row of a relation each of its ``entries`` is in."""
        if self.compiled:
            return (starts.searchsorted(entries, side="right") - 1).tolist()  # type: ignore[no-any-return]
        return [bisect_right(starts, entry) - 1 for entry in entries]

    def run(self, loop: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``loop`` as it is to be run on such tables."""
        return _compile(loop) if self.compiled else loop

    def ranges(self, column: Table, size: int) -> Table:
        """Return where each of the numbers below ``size`` starts in the sorted ``column``, and its end."""
        starts = self.filled(size + 1)
        self.run(bound)(column, starts)
        return starts

    def transposed(self, starts: Table, columns: Table, size: int) -> tuple[Table, Table]:
        """Return the same relation by columns, of which there are ``size``: their starts, and rows."""
        ends = self.filled(size + 2)
        rows = self.filled(len(columns))
        self.run(transpose)(starts, columns, ends, rows)
        return ends[: size + 1], rows


@cache
def _njit() -> Callable[..., Any] | None:
    try:
        from numba import njit
    except ImportError:
        return None
    return njit


@cache
def _compile(loop: Callable[..., Any]) -> Callable[..., Any]:
    njit = _njit()
    assert njit is not None
    try:
        return njit(cache=True)(loop)  # type: ignore[no-any-return]
    except RuntimeError:  # there is no folder to keep what was compiled in
        return njit(loop)  # type: ignore[no-any-return]


def bound(column: Table, starts: Table) -> None:
    """Find the ranges of the sorted ``column``: ``starts`` has zeros, one more than there are numbers."""
    for number in column:
        starts[number + 1] += 1
    for number in range(1, len(starts)):
        starts[number] += starts[number - 1]


def transpose(starts: Table, columns: Table, ends: Table, rows: Table) -> None:
    """Sort a relation by columns, by counting. ``ends`` (zeros, two more than columns) gets the starts."""
    for column in columns:
        ends[column + 2] += 1
    for column in range(2, len(ends)):
        ends[column] += ends[column - 1]
    for row in range(len(starts) - 1):
        for at in range(starts[row], starts[row + 1]):
            column = columns[at] + 1
            rows[ends[column]] = row
            ends[column] += 1
