"""Groups and slots: which flows move together, and the numbers the data plane knows them by.

A group is the flows of one job that take one path. Its number (1..) is the key of the switches'
``group_level``; a flow's slot (1..) indexes their per-flow registers. Both are handed out smallest first,
stay with their holder, and are free for another only some time after their holder went, so that neither a
stale table entry nor a stale register is taken for the new holder's. Where no other is left, the one whose
holder has been gone for longest goes earlier: jobs and flows that come and go must not use up what others
need. 0 is never handed out: it is what a packet without an entry has. Pure but for its own memory; the
caller tells the time and persists it.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from controlplane.model import FiveTuple, Group, Path

FlowId = TypeVar("FlowId", bound=Hashable)
Holder = TypeVar("Holder", bound=Hashable)


def group_flows(flows: Iterable[tuple[FlowId, str, Path]]) -> tuple[list[Group], dict[FlowId, str]]:
    """Group (flow, job, path) triples; return the groups, ids "1".. as they appear, and each flow's."""
    groups: dict[tuple[str, Path], Group] = {}
    group_of: dict[FlowId, str] = {}
    for flow, job, path in flows:
        group = groups.setdefault((job, path), Group(str(len(groups) + 1), job, path))
        group_of[flow] = group.id
    return list(groups.values()), group_of


class Numbers(Generic[Holder]):
    """Stable numbers 1..``limit`` for holders that come and go.

    ``free_after_ns`` is how long a number rests after its holder went; a holder that comes back meanwhile
    gets the same one. ``saved`` are the numbers of an earlier life, held until `keep` is first called.
    """

    def __init__(self, limit: int, free_after_ns: int, saved: Mapping[Holder, int] | None = None) -> None:
        self._limit = limit
        self._free_after_ns = free_after_ns
        self._number: dict[Holder, int] = {
            holder: number for holder, number in (saved or {}).items() if 1 <= number <= limit
        }
        self._gone_ns: OrderedDict[Holder, int] = OrderedDict()  # the longest gone first
        taken = set(self._number.values())
        self._never_used = max(taken, default=0) + 1
        self._free = sorted(set(range(1, self._never_used)) - taken)  # a sorted list is a heap

    def keep(self, holders: Iterable[Holder], now_ns: int) -> dict[Holder, int]:
        """Say who holds numbers now; return theirs. A holder is left out when all numbers are taken."""
        wanted = dict.fromkeys(holders)
        for holder in self._number.keys() - wanted.keys():
            gone_ns = self._gone_ns.setdefault(holder, now_ns)
            if now_ns - gone_ns >= self._free_after_ns:
                heapq.heappush(self._free, self._number.pop(holder))
                del self._gone_ns[holder]
        for holder in wanted:
            self._gone_ns.pop(holder, None)
        held: dict[Holder, int] = {}
        for holder in wanted:
            number = self._number.get(holder) or self._take()
            if number:
                held[holder] = self._number[holder] = number
        return held

    @property
    def any_gone(self) -> bool:
        """Whether some number waits to be free again."""
        return bool(self._gone_ns)

    def resting(self) -> dict[Holder, int]:
        """Return every number that is not free yet, those of holders that went included."""
        return dict(self._number)

    def _take(self) -> int:
        """Return the smallest free number, or the one that rests for longest; 0 where there is none."""
        if self._free:
            return heapq.heappop(self._free)
        if self._never_used > self._limit:
            return self._number.pop(self._gone_ns.popitem(last=False)[0]) if self._gone_ns else 0
        self._never_used += 1
        return self._never_used - 1


GroupKey = tuple[str, Path]
"""What makes a group: its job and its path."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The groups there are, their numbers, and where each flow is."""

    groups: tuple[Group, ...] = ()
    number: Mapping[str, int] = field(default_factory=dict)
    """Group id -> number in the data plane."""
    flows: Mapping[FiveTuple, tuple[str, int]] = field(default_factory=dict)
    """Flow -> (group id, slot)."""
    unplaced: tuple[FiveTuple, ...] = ()
    """Flows for which the data plane has no number left."""


class GroupTable:
    """Keeps groups and slots over time.

    ``max_group`` and ``max_slot`` are the sizes of the data plane's tables and registers.
    """

    def __init__(
        self,
        max_group: int,
        max_slot: int,
        free_after_ns: int,
        saved_groups: Mapping[GroupKey, int] | None = None,
        saved_slots: Mapping[FiveTuple, int] | None = None,
    ) -> None:
        self._groups: Numbers[GroupKey] = Numbers(max_group, free_after_ns, saved_groups)
        self._slots: Numbers[FiveTuple] = Numbers(max_slot, free_after_ns, saved_slots)

    def place(self, flows: Mapping[FiveTuple, GroupKey], now_ns: int) -> Placement:
        """Place ``flows`` (flow -> job and path), which replace those of the last call."""
        numbers = self._groups.keep(flows.values(), now_ns)
        slots = self._slots.keep(flows, now_ns)
        groups = {key: Group(str(number), *key) for key, number in numbers.items()}
        placed = {
            flow: (groups[key].id, slots[flow])
            for flow, key in flows.items()
            if key in groups and flow in slots
        }
        populated = {group for group, _ in placed.values()}
        return Placement(
            groups=tuple(group for group in groups.values() if group.id in populated),
            number={group.id: int(group.id) for group in groups.values() if group.id in populated},
            flows=placed,
            unplaced=tuple(flow for flow in flows if flow not in placed),
        )

    @property
    def any_gone(self) -> bool:
        """Whether some number waits to be free again: `place` has to be called from time to time."""
        return self._groups.any_gone or self._slots.any_gone

    def group_numbers(self) -> dict[GroupKey, int]:
        """Return all group numbers that are not free yet, to be persisted."""
        return self._groups.resting()

    def slot_numbers(self) -> dict[FiveTuple, int]:
        """Return all slots that are not free yet, to be persisted."""
        return self._slots.resting()
