"""The least of a row of numbers that are not negative, and where it is.

Such numbers are in the same order as the integers with the same bits. Of those a compiler compares several at
a time, which it does not dare with numbers that could be NaN. Numbers that were written just before are a
different matter: a processor has to wait until they have all arrived where it can read several at once.
"""

from __future__ import annotations

import numpy as np

from simulator.compiled import inlined

NEVER = int(np.float64(np.inf).view(np.int64))
"""The bits of infinity."""

LANES = 8
"""Rows are searched in steps of as many, so their lengths are multiples of it: nothing is left at the end."""


@inlined
def least(row: np.ndarray, first: int, size: int) -> float:
    """Return the least of the ``size`` numbers of ``row`` from ``first`` on, inf where there are none."""
    found = np.int64(NEVER)
    for at in range(first, first + (size & -LANES)):
        bits = np.float64(row[at]).view(np.int64)
        found = bits if bits < found else found
    return float(np.int64(found).view(np.float64))


@inlined
def where(row: np.ndarray, first: int, size: int, number: float) -> int:
    """Return the last of these places at which ``row`` has ``number``; there must be one."""
    found = first
    for at in range(first, first + (size & -LANES)):
        found = at if row[at] == number else found
    return int(found)


@inlined
def least_of_lanes(row: np.ndarray, first: int) -> tuple[int, float]:
    """Return where the least of the ``LANES`` numbers of ``row`` from ``first`` on is, and that number.

    It reads one by one what may have been written just before, and branches nowhere.
    """
    a, b, c, d = row[first], row[first + 1], row[first + 2], row[first + 3]
    e, f, g, h = row[first + 4], row[first + 5], row[first + 6], row[first + 7]
    ab, ab_at = (b, first + 1) if b < a else (a, first)
    cd, cd_at = (d, first + 3) if d < c else (c, first + 2)
    ef, ef_at = (f, first + 5) if f < e else (e, first + 4)
    gh, gh_at = (h, first + 7) if h < g else (g, first + 6)
    low, low_at = (cd, cd_at) if cd < ab else (ab, ab_at)
    high, high_at = (gh, gh_at) if gh < ef else (ef, ef_at)
    return (high_at, high) if high < low else (low_at, low)
