"""What a re-ranking changed: which groups run at other levels than before, and what of it people are told.

The log has one line for a re-ranking, with at most `SHOWN` jobs; the last change of every job, with its
reason, is on the status page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controlplane.model import Group, Levels, Link

SHOWN = 8
"""Jobs that a line in the log tells of, those with the most groups that changed first."""


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A group that runs at other levels than before; no ``before`` means that it is new."""

    group: Group
    before: Mapping[Link, int]
    after: Mapping[Link, int]
    reason: str


@dataclass(frozen=True, slots=True)
class JobChange:
    """What one re-ranking, at ``now_ns``, changed for one job."""

    now_ns: int
    groups: int
    """How many of its groups it moved."""
    before: str
    """The levels of the first of these, ``none`` where it is new..."""
    after: str
    reason: str


class InForce:
    """The levels in force, by group, and the last change of every job."""

    def __init__(self) -> None:
        self._groups: Sequence[Group] = ()
        self._levels: Levels = {}
        self._known: dict[str, tuple[Group, Mapping[Link, int]]] = {}
        self._of_job: dict[str, JobChange] = {}

    @property
    def last(self) -> Mapping[str, JobChange]:
        """The last change of every job that has groups, by its id."""
        return self._of_job

    def follow(
        self, groups: Sequence[Group], levels: Levels, reasons: Mapping[str, str], now_ns: int
    ) -> list[LevelChange]:
        """Put ``levels`` of ``groups`` in force; return what that changes. ``reasons`` are the jobs'.

        The same two objects as last time change nothing, and take no time.
        """
        if groups is self._groups and levels is self._levels:
            return []
        changes: list[LevelChange] = []
        known: dict[str, tuple[Group, Mapping[Link, int]]] = {}
        for group in groups:
            after = levels[group.id]
            then = self._known.get(group.id)
            before = then[1] if then and (then[0] is group or then[0] == group) else {}
            if before != after:
                changes.append(LevelChange(group, before, after, reasons[group.job]))
            known[group.id] = group, after
        if groups is not self._groups:
            jobs = {group.job for group in groups}
            self._of_job = {job: change for job, change in self._of_job.items() if job in jobs}
        self._of_job |= by_job(changes, now_ns)
        self._groups, self._levels, self._known = groups, levels, known
        return changes


def by_job(changes: Sequence[LevelChange], now_ns: int) -> dict[str, JobChange]:
    """Sum up ``changes`` by job, describing each by its first."""
    count: dict[str, int] = {}
    first: dict[str, LevelChange] = {}
    for change in changes:
        job = change.group.job
        count[job] = count.get(job, 0) + 1
        first.setdefault(job, change)
    return {
        job: JobChange(now_ns, count[job], written(change.before), written(change.after), change.reason)
        for job, change in first.items()
    }


def written(levels: Mapping[Link, int]) -> str:
    """Write levels as people read them: ``5``, or ``S1:3=5, S2:1=6`` where links have different ones."""
    different = set(levels.values())
    if len(different) > 1:
        return ", ".join(f"{link}={level}" for link, level in levels.items())
    return str(different.pop()) if different else "none"


def log_line(changes: Mapping[str, JobChange], limit: int = SHOWN) -> dict[str, object]:
    """Return the fields of the line in the log: counts, and of up to ``limit`` jobs what changed and why."""
    told = sorted(changes, key=lambda job: (-changes[job].groups, job))[:limit]
    fields: dict[str, object] = {
        "jobs": len(changes),
        "groups": sum(change.groups for change in changes.values()),
        "changed": {
            job: f"{changes[job].before} -> {changes[job].after}: {changes[job].reason}" for job in told
        },
    }
    if len(changes) > limit:
        fields["more"] = len(changes) - limit
    return fields
