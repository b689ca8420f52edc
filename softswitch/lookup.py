"""Finding the entry that a key hits, for match kinds other than exact: tuple-space search.

Entries are grouped by their mask; within a group a masked key is looked up in a dict. Groups are tried from
the highest precedence down, so a search ends as soon as no remaining group can do better. Ranges cannot be
hashed: they take mask 0 and are compared on the few candidates of a bucket.

The packet path reads while another thread writes: buckets and the group order are replaced, never changed in
place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")
Masks = tuple[int, ...]
Ranges = tuple[tuple[int, int, int], ...]  # (field index, low, high)


@dataclass(slots=True, frozen=True)
class Rule(Generic[T]):
    """What one entry matches: masked ``value``, ``masks`` and ``ranges``.

    ``precedence`` decides between hits.
    """

    value: Masks
    masks: Masks
    ranges: Ranges
    precedence: int
    entry: T
    sequence: int = field(default_factory=count().__next__)

    @property
    def rank(self) -> tuple[int, int]:
        """Smaller wins: higher precedence first, then the rule added first, as in bmv2."""
        return -self.precedence, self.sequence


@dataclass(slots=True)
class _Group(Generic[T]):
    masks: Masks
    buckets: dict[Masks, tuple[Rule[T], ...]] = field(default_factory=dict)
    best: int = 0  # no rule here has a higher precedence (removals leave it as an upper bound)


class TupleSpace(Generic[T]):
    """Rules under precedence: ``find`` gives the entry of the matching rule with the highest precedence."""

    def __init__(self) -> None:
        self._groups: dict[Masks, _Group[T]] = {}
        self._order: tuple[_Group[T], ...] = ()

    def add(self, rule: Rule[T]) -> None:
        """Add a rule; its ``value`` must already be masked."""
        group = self._groups.get(rule.masks)
        stale = group is None or rule.precedence > group.best
        if group is None:
            group = self._groups[rule.masks] = _Group(rule.masks)
        bucket = group.buckets.get(rule.value, ())
        group.buckets[rule.value] = tuple(sorted((*bucket, rule), key=lambda r: r.rank))
        if stale:
            group.best = rule.precedence
            self._reorder()

    def remove(self, rule: Rule[T]) -> None:
        """Remove a rule that was added."""
        group = self._groups[rule.masks]
        rest = tuple(r for r in group.buckets[rule.value] if r is not rule)
        if rest:
            group.buckets[rule.value] = rest
            return
        del group.buckets[rule.value]
        if not group.buckets:
            del self._groups[rule.masks]
            self._reorder()

    def find(self, key: Masks) -> T | None:
        """Return the entry that ``key`` hits, or None."""
        best: Rule[T] | None = None
        for group in self._order:
            if best is not None and best.precedence > group.best:
                break
            bucket = group.buckets.get(tuple(map(int.__and__, key, group.masks)))
            if bucket is None:
                continue
            for rule in bucket:
                if all(low <= key[i] <= high for i, low, high in rule.ranges):
                    if best is None or rule.rank < best.rank:
                        best = rule
                    break
        return None if best is None else best.entry

    def _reorder(self) -> None:
        self._order = tuple(sorted(self._groups.values(), key=lambda g: -g.best))
