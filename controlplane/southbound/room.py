"""Who keeps a place where a table has room for fewer rows than are wanted. Pure.

A table's ``size`` in P4Info is a wish: a switch may refuse a row earlier (P4Runtime specification, 9.1: a
full table answers RESOURCE_EXHAUSTED). So the size is where we begin, and where the switch refuses is
learnt; now and then a little more is tried, since space that others took may be free again.

Rows are kept by R of their job, lowest first; the flows of the others have no entry, and run at the switch's
default level. A row that has its place already counts as if its R were ``MARGIN`` lower, so that jobs
whose R is alike do not take turns; and the choice is looked at again only every few seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from controlplane.southbound.tables import FLOW_TABLES, Call, Contents, Key

Row = TypeVar("Row")

MARGIN = 0.05
"""By how much R must be lower for a row to take the place of one that is there."""

_MORE = 1000
"""Rows more than the switch took that are tried when it is time to try."""


def fit(
    rows: Mapping[Row, Call], held: Collection[Row], capacity: int, rate: Callable[[Row, Call], float]
) -> dict[Row, Call]:
    """Return the ``capacity`` rows to keep: those of the lowest ``rate``, those in ``held`` ``MARGIN`` ahead.

    Where these are alike, the mapping's order decides.
    """

    def order(item: tuple[Row, Call]) -> float:
        return rate(*item) - (MARGIN if item[0] in held else 0.0)

    return dict(sorted(rows.items(), key=order)[:capacity])


class Room:
    """What one switch's tables have room for, and what is left out for want of it.

    ``sizes``: table -> rows, of P4Info.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self._learnt: dict[str, int] = {}
        self._stubborn: set[tuple[str, Key]] = set()
        self._refused = False
        self._left_out: dict[str, Counter[int]] = {}
        self.rates: Mapping[int, float] = {}
        """Group -> R of its job; a group that is not there counts as 1.0, the highest."""

    def capacity(self, table: str) -> int:
        """Return the number of rows that ``table`` is thought to take."""
        return min(self._sizes[table], self._learnt.get(table, self._sizes[table]))

    def forget(self) -> None:
        """Forget what was learnt: the tables are others."""
        self._learnt.clear()
        self._stubborn.clear()
        self._left_out = {}

    def for_groups(self, count: int) -> bool:
        """Say whether there is room for ``count`` groups: each needs a row in both banks."""
        return 2 * count <= self.capacity("group_level")

    def groups(self, wanted: Mapping[int, Call], held: Collection[int]) -> dict[int, Call]:
        """Return the groups to rank, where there is no room for all."""
        return fit(wanted, held, self.capacity("group_level") // 2, lambda group, _: self._rate(group))

    def for_flows(self, counts: Mapping[str, int]) -> bool:
        """Say whether there is room for so many rows of each flow table; if so, nothing is left out."""
        if self._stubborn or any(count > self.capacity(table) for table, count in counts.items()):
            return False
        self._left_out = {}
        return True

    def flows(self, wanted: Contents, held: Contents, groups: Collection[int] | None) -> Contents:
        """Return the rows of the flow tables to install; what is left out is counted from here on.

        ``groups``: only flows of these, where not all groups fit (None: of all).
        """
        chosen: Contents = {}
        self._left_out = {}
        for table in FLOW_TABLES:
            rows = wanted[table]
            capacity = self.capacity(table)
            kept = rows
            if self._stubborn or groups is not None:
                kept = {
                    key: call
                    for key, call in rows.items()
                    if (table, key) not in self._stubborn and (groups is None or call.args[0] in groups)
                }
            if len(kept) > capacity:
                kept = fit(kept, held[table], capacity, lambda _, call: self._rate(call.args[0]))
            if len(kept) < len(rows):
                self._left_out[table] = Counter(call.args[0] for key, call in rows.items() if key not in kept)
            chosen[table] = kept
        return chosen

    def learn(self, refused: Iterable[tuple[str, Key]], contents: Contents, *, made_way: bool) -> bool:
        """Take in that rows found ``contents``' tables full; return whether others may have to make way.

        ``made_way``: rows that were to be enough have been deleted before. A row that is refused all the same
        (tables that hash their keys do that) is left out until `try_more`.
        """
        rows = list(refused)
        self._refused |= bool(rows)
        for table, key in rows:
            if made_way and table in FLOW_TABLES:
                self._stubborn.add((table, key))
            else:
                self._learnt[table] = len(contents[table])
        return bool(rows)

    def try_more(self) -> None:
        """Let each table that refused rows be tried with a few more than it took."""
        self._stubborn.clear()
        self._refused = False
        for table, rows in self._learnt.items():
            self._learnt[table] = rows + _MORE
        self._learnt = {table: rows for table, rows in self._learnt.items() if rows < self._sizes[table]}

    @property
    def grew(self) -> bool:
        """Whether tables took more than they once did, and perhaps would take more still."""
        return bool(self._learnt) and not self._refused

    def left_out(self) -> Mapping[str, Mapping[int, int]]:
        """Table -> group -> flows that have no entry because there is no room."""
        return self._left_out

    def _rate(self, group: int) -> float:
        return self.rates.get(group, 1.0)
