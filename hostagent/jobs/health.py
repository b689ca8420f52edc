"""Whether a job runs, hangs, has ended or has died."""

from __future__ import annotations

import enum
import os
from collections.abc import Collection
from dataclasses import dataclass

from hostagent.jobs.exits import describe


class Health(enum.Enum):
    """How a job is on this host."""

    RUNNING = "running"
    HUNG = "hung"
    """Its processes are there, and it has completed no iteration for many times an iteration's time."""
    ENDED = "ended"
    """Its processes are gone, and nothing says that it was not meant so."""
    DIED = "died"
    """They are gone, and it was in the middle."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a job may be without an iteration before it counts as hung."""

    lines: float = 20.0
    """So many times the longest of the last times from one line of its log to the next .."""
    shortest_ns: int = 60 * 10**9
    """.. but never less than this."""
    unknown_ns: int = 600 * 10**9
    """And so long where the log gives no times."""

    def limit_ns(self, gap_ns: int) -> int:
        """Return it for a job whose lines are ``gap_ns`` apart; 0 is unknown."""
        return max(self.shortest_ns, int(self.lines * gap_ns)) if gap_ns else self.unknown_ns


def verdict(
    statuses: Collection[int | None], value: int | None, total: int | None, *, failed: bool
) -> tuple[Health, str]:
    """Say how a job whose processes are gone ended, and why.

    ``statuses`` are the wait statuses of its ranks here, None where not known; ``value`` and ``total`` are
    the last iteration in its log and where that was to end; ``failed``: the log ends with a traceback. A rank
    that failed or was killed counts for more than any log.
    """
    bad = sorted((status for status in statuses if status), key=_severity)
    if bad:
        return Health.DIED, describe(bad[0])
    if statuses and None not in statuses:
        return Health.ENDED, "exit code 0"
    if total is not None and value is not None:
        reached = f"its log ends at iteration {value} of {total}"
        return (Health.ENDED if value >= total else Health.DIED), reached
    if failed:
        return Health.DIED, "its log ends with a traceback"
    return Health.ENDED, "exit not seen"


def _severity(status: int) -> int:
    """Own failures first: the others are ended by the launcher when one has failed."""
    return int(os.WIFSIGNALED(status) and os.WTERMSIG(status) in (2, 9, 15))
