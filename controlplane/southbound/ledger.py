"""What a switch holds, kept update by update as it acknowledges them, and what it refused. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from finsy.grpcutil import GRPCStatusCode
from finsy.p4client import P4Error

from controlplane.southbound.diff import Change, apply
from controlplane.southbound.tables import FLOW_TABLES, Call, Contents, Key

_DRIFT = (GRPCStatusCode.NOT_FOUND, GRPCStatusCode.ALREADY_EXISTS)
"""Errors of an update that show that the switch does not hold what was thought."""

_NO_ROOM = (GRPCStatusCode.RESOURCE_EXHAUSTED, GRPCStatusCode.UNKNOWN)
"""What a full table answers to an insertion: the specification's code, and bmv2's."""

LIMITED_TABLES = (*FLOW_TABLES, "group_level")
"""Tables whose rows give way to each other when there is no room for all (see ``room``)."""


class DriftError(Exception):
    """The switch does not hold what was thought: read it back. The text names an update that showed it."""


class Ledger:
    """One switch's contents, from a read-back on."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.refused: dict[tuple[str, Key], Call] = {}
        """Rows that the switch refused, but for those in ``no_room``."""
        self.no_room: dict[tuple[str, Key], Call] = {}
        """Rows of ``LIMITED_TABLES`` that found a full table, since `take_no_room`."""
        self.reason = ""
        """Why, of the last one, for a person."""

    def worth_writing(self, changes: Iterable[Change]) -> Iterator[Change]:
        """Yield ``changes`` without the rows that were refused before, while nothing has made room."""
        for change in changes:
            if not self.refused or self.refused.get(change[:2], change) != change.call:
                yield change

    def forget_unwanted(self, wanted: Contents) -> None:
        """Forget refused rows that are not in ``wanted``, as they are there."""
        self.refused = {
            (table, key): call
            for (table, key), call in self.refused.items()
            if wanted.get(table, {}).get(key) == call
        }

    def take_no_room(self) -> dict[tuple[str, Key], Call]:
        """Return the rows that found a full table since the last call."""
        taken, self.no_room = self.no_room, {}
        return taken

    def note(self, batch: Collection[Change], errors: Mapping[int, P4Error], *, strict: bool) -> None:
        """Account for one acknowledged Write with its errors by position.

        Raises DriftError, after all of it is accounted for, where ``strict`` and an error shows drift.
        """
        accepted = batch
        drift = None
        if errors:
            accepted = [
                change for at, change in enumerate(batch) if at not in errors or _gone(change, errors[at])
            ]
            failed = {change: errors[at] for at, change in enumerate(batch) if at in errors}
            drift = self._refusals(failed, strict=strict)
        apply(self.contents, accepted)
        if self.refused:
            freed = {change.table for change in accepted if change.call is None}
            held = {change[:2] for change in accepted}
            self.refused = {
                row: call for row, call in self.refused.items() if row[0] not in freed and row not in held
            }
        if drift is not None:
            raise DriftError(drift)

    def _refusals(self, errors: Mapping[Change, P4Error], *, strict: bool) -> str | None:
        """Note what was refused; return an update that shows drift, where there is one."""
        drift = None
        for change, error in errors.items():
            if _gone(change, error):
                continue
            if strict and error.canonical_code in _DRIFT:
                drift = f"{change}: {error.canonical_code.name}"
                continue
            self.reason = f"{change.table}: {error.canonical_code.name} {error.message}".rstrip()
            if change.call is None:
                continue
            full = not change.replace and error.canonical_code in _NO_ROOM
            rows = self.no_room if full and change.table in LIMITED_TABLES else self.refused
            rows[change.table, change.key] = change.call
        return drift


def _gone(change: Change, error: P4Error) -> bool:
    """Whether the row that ``change`` deletes was not there, which is as good."""
    return change.call is None and error.canonical_code == GRPCStatusCode.NOT_FOUND
