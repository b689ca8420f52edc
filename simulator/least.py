"""The least of a row of numbers that are not negative, and where it is.

Such numbers are in the same order as the integers with the same bits. Of those a compiler compares several at
a time, which it does not dare with numbers that could be NaN.
"""

from __future__ import annotations

import numpy as np

from simulator.compiled import compiled

NEVER = int(np.float64(np.inf).view(np.int64))
"""The bits of infinity."""


@compiled
def least(row: np.ndarray, first: int, size: int) -> float:
    """Return the least of the ``size`` numbers of ``row`` from ``first`` on, inf where there are none."""
    found = np.int64(NEVER)
    for at in range(first, first + size):
        bits = np.float64(row[at]).view(np.int64)
        found = bits if bits < found else found
    return float(np.int64(found).view(np.float64))


@compiled
def where(row: np.ndarray, first: int, size: int, number: float) -> int:
    """Return the last of these places at which ``row`` has ``number``; there must be one."""
    found = first
    for at in range(first, first + size):
        found = at if row[at] == number else found
    return int(found)
