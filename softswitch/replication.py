"""The packet replication engine: multicast groups and clone sessions (P4Runtime's PRE entries)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from softswitch.errors import Code, TableError


@dataclass(slots=True, frozen=True, order=True)
class Replica:
    """One copy: out of ``port``, with ``instance`` as its egress_rid."""

    instance: int
    port: int


def _replicas(what: str, pairs: Iterable[tuple[int, int]]) -> tuple[Replica, ...]:
    replicas = [Replica(instance, port) for port, instance in pairs]
    if len(set(replicas)) != len(replicas):
        raise TableError(Code.INVALID_ARGUMENT, f"{what} names a (port, instance) twice")
    return tuple(sorted(replicas))


class MulticastGroups:
    """Multicast groups by id (1 or more). Copies leave in order of instance, then port, as from bmv2."""

    def __init__(self) -> None:
        self.groups: dict[int, tuple[Replica, ...]] = {}

    def insert(self, group_id: int, replicas: Iterable[tuple[int, int]]) -> None:
        """Add a group of (port, instance). Raises ``TableError``: ALREADY_EXISTS, INVALID_ARGUMENT."""
        if group_id < 1:
            raise TableError(Code.INVALID_ARGUMENT, "a multicast group's id is 1 or more")
        if group_id in self.groups:
            raise TableError(Code.ALREADY_EXISTS, f"multicast group {group_id} exists already")
        self.groups[group_id] = _replicas(f"multicast group {group_id}", replicas)

    def modify(self, group_id: int, replicas: Iterable[tuple[int, int]]) -> None:
        """Replace a group's replicas. Raises ``TableError``: NOT_FOUND, INVALID_ARGUMENT."""
        self.get(group_id)
        self.groups[group_id] = _replicas(f"multicast group {group_id}", replicas)

    def delete(self, group_id: int) -> None:
        """Remove a group. Raises ``TableError`` NOT_FOUND."""
        self.get(group_id)
        del self.groups[group_id]

    def get(self, group_id: int) -> tuple[Replica, ...]:
        """Return a group's replicas. Raises ``TableError`` NOT_FOUND."""
        if group_id not in self.groups:
            raise TableError(Code.NOT_FOUND, f"there is no multicast group {group_id}")
        return self.groups[group_id]


@dataclass(slots=True, frozen=True)
class CloneSession:
    """Where clones go.

    ``class_of_service`` is their queue; ``packet_length_bytes`` truncates them (0: whole).
    """

    replicas: tuple[Replica, ...]
    class_of_service: int = 0
    packet_length_bytes: int = 0


class CloneSessions:
    """Clone sessions by id."""

    def __init__(self) -> None:
        self.sessions: dict[int, CloneSession] = {}

    def insert(
        self,
        session_id: int,
        replicas: Iterable[tuple[int, int]],
        *,
        class_of_service: int = 0,
        length: int = 0,
    ) -> None:
        """Add a session of (port, instance). Raises ``TableError``: ALREADY_EXISTS, INVALID_ARGUMENT."""
        if session_id in self.sessions:
            raise TableError(Code.ALREADY_EXISTS, f"clone session {session_id} exists already")
        self._set(session_id, replicas, class_of_service, length)

    def modify(
        self,
        session_id: int,
        replicas: Iterable[tuple[int, int]],
        *,
        class_of_service: int = 0,
        length: int = 0,
    ) -> None:
        """Replace a session. Raises ``TableError``: NOT_FOUND, INVALID_ARGUMENT."""
        self.get(session_id)
        self._set(session_id, replicas, class_of_service, length)

    def delete(self, session_id: int) -> None:
        """Remove a session. Raises ``TableError`` NOT_FOUND."""
        self.get(session_id)
        del self.sessions[session_id]

    def get(self, session_id: int) -> CloneSession:
        """Return a session. Raises ``TableError`` NOT_FOUND."""
        if session_id not in self.sessions:
            raise TableError(Code.NOT_FOUND, f"there is no clone session {session_id}")
        return self.sessions[session_id]

    def _set(self, session_id: int, replicas: Iterable[tuple[int, int]], cos: int, length: int) -> None:
        found = _replicas(f"clone session {session_id}", replicas)
        self.sessions[session_id] = CloneSession(found, cos, length)
