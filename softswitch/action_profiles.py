"""Action profiles and selectors: members that table entries share.

And groups a selector chooses members from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from softswitch.entries import (
    ActionCall,
    ActionSpec,
    Choices,
    GroupRef,
    Member,
    MemberRef,
    NumberedCall,
    OneShot,
    TableAction,
)
from softswitch.errors import Code, TableError


@dataclass(slots=True, frozen=True)
class GroupMember:
    """A member's part in a group: ``weight`` >= 1 shares.

    ``watch_port`` takes it out while that port is down.
    """

    member_id: int
    weight: int = 1
    watch_port: int | None = None


class Group(Choices):
    """Weighted members. ``max_size`` limits the sum of weights (0: the profile's limit only)."""

    __slots__ = ("group_id", "max_size", "members")

    def __init__(self, group_id: int, max_size: int) -> None:
        super().__init__()
        self.group_id = group_id
        self.max_size = max_size
        self.members: tuple[GroupMember, ...] = ()


class Actions(Protocol):
    """What a profile has to know of a table that uses it."""

    actions: Mapping[str, ActionSpec]
    """Those it may run, by P4 name."""

    def call(self, action: ActionCall) -> NumberedCall:
        """Return the action as the generated code runs it. Raises ``TableError`` INVALID_ARGUMENT."""


class ActionProfile:
    """An action profile (``selector`` false) or action selector, implemented by ``size`` members at most.

    ``max_group_size`` limits the sum of weights in a group (0: no limit). Actions are checked against every
    table that uses the profile; those tables run the same actions.
    """

    def __init__(self, name: str, size: int, *, selector: bool, max_group_size: int = 0) -> None:
        self.name = name
        self.size = size
        self.selector = selector
        self.max_group_size = max_group_size
        self.members: dict[int, Member] = {}
        self.groups: dict[int, Group] = {}
        self.tables: list[Actions] = []
        self._down: frozenset[int] = frozenset()
        self._one_shots: list[tuple[Group, tuple[tuple[Member, int, int | None], ...]]] = []

    @property
    def actions(self) -> dict[str, ActionSpec]:
        """The actions a member may have, by P4 name."""
        return {name: spec for table in self.tables for name, spec in table.actions.items()}

    def insert_member(self, member_id: int, action: ActionCall) -> Member:
        """Add a member. Raises ``TableError``: ALREADY_EXISTS, INVALID_ARGUMENT, RESOURCE_EXHAUSTED."""
        if member_id in self.members:
            raise TableError(
                Code.ALREADY_EXISTS, f"action profile {self.name} already has member {member_id}"
            )
        if len(self.members) >= self.size:
            raise TableError(
                Code.RESOURCE_EXHAUSTED, f"action profile {self.name} is full ({self.size} members)"
            )
        member = self.members[member_id] = Member(member_id, action, self._call(action))
        return member

    def modify_member(self, member_id: int, action: ActionCall) -> Member:
        """Give a member another action, for every entry and group at once.

        Raises: NOT_FOUND, INVALID_ARGUMENT.
        """
        member = self.member(member_id)
        member.call = self._call(action)
        member.action = action
        return member

    def delete_member(self, member_id: int) -> None:
        """Remove a member.

        Raises ``TableError``: NOT_FOUND, FAILED_PRECONDITION (an entry or group uses it).
        """
        if self.member(member_id).references:
            raise TableError(Code.FAILED_PRECONDITION, f"member {member_id} of {self.name} is in use")
        del self.members[member_id]

    def member(self, member_id: int) -> Member:
        """Return the member. Raises ``TableError`` NOT_FOUND."""
        if member_id not in self.members:
            raise TableError(Code.NOT_FOUND, f"action profile {self.name} has no member {member_id}")
        return self.members[member_id]

    def group(self, group_id: int) -> Group:
        """Return the group. Raises ``TableError`` NOT_FOUND."""
        if group_id not in self.groups:
            raise TableError(Code.NOT_FOUND, f"action profile {self.name} has no group {group_id}")
        return self.groups[group_id]

    def insert_group(self, group_id: int, members: Iterable[GroupMember] = (), max_size: int = 0) -> Group:
        """Add a group.

        Raises ``TableError``: ALREADY_EXISTS, INVALID_ARGUMENT, NOT_FOUND, RESOURCE_EXHAUSTED.
        """
        if not self.selector:
            raise TableError(
                Code.INVALID_ARGUMENT, f"action profile {self.name} has no selector, so no groups"
            )
        if group_id in self.groups:
            raise TableError(Code.ALREADY_EXISTS, f"action profile {self.name} already has group {group_id}")
        group = Group(group_id, max_size)
        self._set_members(group, tuple(members))
        self.groups[group_id] = group
        return group

    def modify_group(self, group_id: int, members: Iterable[GroupMember]) -> Group:
        """Replace a group's members in one step. Raises: NOT_FOUND, INVALID_ARGUMENT, RESOURCE_EXHAUSTED."""
        group = self.group(group_id)
        self._set_members(group, tuple(members))
        return group

    def delete_group(self, group_id: int) -> None:
        """Remove a group. Raises ``TableError``: NOT_FOUND, FAILED_PRECONDITION (an entry uses it)."""
        group = self.group(group_id)
        if group.references:
            raise TableError(Code.FAILED_PRECONDITION, f"group {group_id} of {self.name} is in use")
        for m in group.members:
            self.members[m.member_id].references -= 1
        del self.groups[group_id]

    def set_ports_down(self, ports: Iterable[int]) -> None:
        """Take the members that watch one of these ports out of their groups, and all others back in."""
        self._down = frozenset(ports)
        for group in self.groups.values():
            group.choices = self._spread(
                (self.members[m.member_id], m.weight, m.watch_port) for m in group.members
            )
        for one_shot, shares in self._one_shots:
            one_shot.choices = self._spread(shares)

    def anonymous(self, call: NumberedCall) -> Member:
        """Return a member outside the profile, for a table's default action."""
        return Member(0, None, call)

    def acquire(self, table: Actions, action: TableAction) -> Choices:
        """Return what ``action`` (a reference, or a one-shot group) stands for; counts the reference.

        Raises: NOT_FOUND.
        """
        target: Choices
        if isinstance(action, MemberRef):
            target = self.member(action.member_id)
        elif isinstance(action, GroupRef):
            target = self.group(action.group_id)
        else:
            assert isinstance(action, OneShot)
            if not self.selector:
                raise TableError(Code.INVALID_ARGUMENT, f"action profile {self.name} has no selector")
            shares = tuple(
                (Member(0, call, table.call(call)), weight, int.from_bytes(port, "big") if port else None)
                for call, weight, port in action.actions
            )
            self._check_weights(0, [weight for _, weight, _ in shares])
            target = Group(0, 0)
            target.choices = self._spread(shares)
            self._one_shots.append((target, shares))
        target.references += 1
        return target

    def release(self, target: Choices) -> None:
        """Undo one ``acquire``."""
        target.references -= 1
        if not target.references:
            self._one_shots = [item for item in self._one_shots if item[0] is not target]

    def _call(self, action: ActionCall) -> NumberedCall:
        calls = [table.call(action) for table in self.tables]
        if not calls:
            raise TableError(Code.INVALID_ARGUMENT, f"no table uses action profile {self.name}")
        return calls[0]

    def _set_members(self, group: Group, members: tuple[GroupMember, ...]) -> None:
        if len({m.member_id for m in members}) != len(members):
            raise TableError(
                Code.INVALID_ARGUMENT, f"group {group.group_id} of {self.name} names a member twice"
            )
        self._check_weights(group.max_size, [m.weight for m in members])
        found = [self.member(m.member_id) for m in members]
        for old in group.members:
            self.members[old.member_id].references -= 1
        for member in found:
            member.references += 1
        group.members = members
        group.choices = self._spread(
            (member, m.weight, m.watch_port) for member, m in zip(found, members, strict=True)
        )

    def _check_weights(self, max_size: int, weights: list[int]) -> None:
        if any(w < 1 for w in weights):
            raise TableError(
                Code.INVALID_ARGUMENT, f"a group member's weight in {self.name} must be at least 1"
            )
        for limit in (max_size, self.max_group_size):
            if limit and sum(weights) > limit:
                raise TableError(
                    Code.RESOURCE_EXHAUSTED, f"group of {self.name}: weights add up to more than {limit}"
                )

    def _spread(self, shares: Iterable[tuple[Member, int, int | None]]) -> tuple[Member, ...]:
        return tuple(
            member for member, weight, port in shares if port not in self._down for _ in range(weight)
        )
