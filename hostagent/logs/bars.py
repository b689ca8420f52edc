"""Progress bars, as tqdm draws them; several formats are made of one.

With a total, ``DESCRIPTION:  45%|████▌     | 29/64 [00:01<00:00, 53.17it/s, loss=2.3]``; without,
``DESCRIPTION: 29it [00:01, 53.17it/s, loss=2.3]``. Lightning writes the latter with a ``?`` for the total.
Slow bars give ``1.20s/it``, and one that has not begun ``?it/s``. A bar may redraw less often than it counts,
so its numbers leap.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from hostagent.logs.format import MAX_DURATION_NS, iteration, whole

_CLOSED = re.compile(
    r" *(?:\d{1,3}%)?\|[^|]{0,1000}\| ([^\s/|[\]]{1,40})/([^\s/|[\]]{1,40}) \[([^][]{0,1000})"
)
_OPEN = re.compile(r" *([^\s/|[\]]{1,40}?)(?:it|ba) \[([^][]{0,1000})")
_RATE = re.compile(r", *(?:\?|([0-9.]{1,20}))(?:(it|ba)/s|s/(?:it|ba))")


class Bar(NamedTuple):
    """One drawing of a bar."""

    done: int
    total: int | None
    pace_ns: int | None
    """Time per step, averaged; None where it is not known yet."""


def read(line: str, position: int = 0, *, rated: bool = True) -> Bar | None:
    """Read the bar at ``position`` of ``line``, behind its description.

    None where there is none, or one that counts something else than steps (bytes, examples), or one without
    a rate, unless ``rated`` is false. Raises RejectedLineError for numbers that cannot be.
    """
    found = _CLOSED.match(line, position)
    total = whole(found[2]) if found else None
    if found is None and (found := _OPEN.match(line, position)) is None:
        return None
    inside = found[found.lastindex or 1]
    rate = _RATE.search(inside)
    if rate is None and rated:
        return None
    return Bar(iteration(found[1]), total, _pace(rate) if rate else None)


def _pace(rate: re.Match[str]) -> int | None:
    try:
        value = float(rate[1] or "0")
    except ValueError:
        return None
    if value <= 0:
        return None
    pace_ns = 1e9 / value if rate[2] else 1e9 * value
    return int(pace_ns) if 1 <= pace_ns <= MAX_DURATION_NS else None
