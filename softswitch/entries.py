"""What a table's entry is made of: key fields and matches, actions or what to choose from, the entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from softswitch.externs import MeterCell
from softswitch.lookup import Rule

MatchKind = Literal["exact", "lpm", "ternary", "range", "optional"]
MatchValue = int | tuple[int, int] | None
"""exact, optional: value; lpm: (value, prefix length); ternary: (value, mask); range: (low, high).

Don't care is (0, 0) for lpm and ternary, (0, 2**width - 1) for range, None for optional.
"""


@dataclass(slots=True, frozen=True)
class KeyField:
    """One component of a table's key; ``width`` in bits."""

    name: str
    kind: MatchKind
    width: int

    @property
    def maximum(self) -> int:
        """The largest value of this field."""
        return (1 << self.width) - 1

    def admits(self, m: MatchValue) -> bool:
        """Whether ``m`` is a match of this field's kind and width, and canonical: nothing beyond its mask."""
        if self.kind == "exact":
            return isinstance(m, int) and 0 <= m <= self.maximum
        if self.kind == "optional":
            return m is None or (isinstance(m, int) and 0 <= m <= self.maximum)
        if not isinstance(m, tuple) or len(m) != 2:
            return False
        first, second = m
        if self.kind == "lpm":
            mask = self.maximum ^ (self.maximum >> second) if 0 <= second <= self.width else -1
            return mask >= 0 and 0 <= first <= self.maximum and first & mask == first
        if self.kind == "ternary":
            return 0 <= second <= self.maximum and 0 <= first <= self.maximum and first & second == first
        return 0 <= first <= second <= self.maximum


@dataclass(slots=True, frozen=True)
class ActionSpec:
    """An action a table may run: its P4 name, the generated code's number of it, its parameters' bits."""

    name: str
    number: int
    widths: tuple[int, ...]


@dataclass(slots=True, frozen=True)
class ActionCall:
    """An action's name with its arguments, in order of its parameters."""

    name: str
    args: tuple[int, ...] = ()


@dataclass(slots=True, frozen=True)
class MemberRef:
    """Use the action of an action profile's member."""

    member_id: int


@dataclass(slots=True, frozen=True)
class GroupRef:
    """Let the selector choose among an action profile group's members."""

    group_id: int


@dataclass(slots=True, frozen=True)
class OneShot:
    """A group written together with its entry: (action, weight, watch port or b"") each."""

    actions: tuple[tuple[ActionCall, int, bytes], ...]


TableAction = ActionCall | MemberRef | GroupRef | OneShot
NumberedCall = tuple[int, tuple[int, ...]]


class Choices:
    """What an entry of an indirect table points at: ``choices`` are the members the packet path picks from.

    One member: that one. Several: the selector's hash modulo their number. None: no action runs.
    """

    __slots__ = ("choices", "references")

    def __init__(self) -> None:
        self.choices: tuple[Member, ...] = ()
        self.references = 0


class Member(Choices):
    """An action with its arguments. ``call`` is what the generated code runs."""

    __slots__ = ("action", "call", "member_id")

    def __init__(self, member_id: int, action: ActionCall | None, call: NumberedCall) -> None:
        super().__init__()
        self.member_id = member_id
        self.action = action
        self.call = call
        self.choices = (self,)


class Entry:
    """One table entry. ``match`` and ``priority`` identify it; the packet path updates the rest.

    ``call`` is what the generated code runs: (action number, arguments). In a table with an action profile,
    ``target`` holds what to choose from instead. ``packets``/``bytes`` are the direct counter, ``meter`` the
    direct meter (None if the table has none). ``last_hit_us`` is the switch's clock at the last hit (kept for
    tables with idle timeout only).
    """

    __slots__ = (
        "action",
        "bytes",
        "call",
        "controller_metadata",
        "idle_timeout_ns",
        "is_const",
        "last_hit_us",
        "match",
        "metadata",
        "meter",
        "packets",
        "priority",
        "rule",
        "target",
    )

    def __init__(self, match: tuple[MatchValue, ...], priority: int, action: TableAction) -> None:
        self.match = match
        self.priority = priority
        self.action = action
        self.call: NumberedCall = (-1, ())
        self.target: Choices | None = None
        self.metadata = b""
        self.controller_metadata = 0
        self.idle_timeout_ns = 0
        self.last_hit_us = 0
        self.packets = 0
        self.bytes = 0
        self.meter: MeterCell | None = None
        self.is_const = False
        self.rule: Rule[Entry] | None = None

    @property
    def last_hit_ns(self) -> int:
        """The switch's clock at the last hit, in nanoseconds."""
        return self.last_hit_us * 1000

    def __repr__(self) -> str:
        return f"Entry({self.match}, priority={self.priority}, {self.action})"
