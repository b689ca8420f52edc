"""Brings one switch from what it holds to a ``Desired``: phases, batches, and what does not go as planned."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import NamedTuple

from finsy.p4client import P4Error
from structlog.typing import FilteringBoundLogger

from controlplane.model import FiveTuple
from controlplane.southbound import diff, tables
from controlplane.southbound.device import Device
from controlplane.southbound.diff import Change, Phase, Step
from controlplane.southbound.encode import MAX_UPDATES
from controlplane.southbound.errors import OverflowedError, SwitchError
from controlplane.southbound.ledger import DriftError, Ledger
from controlplane.southbound.room import Room
from controlplane.southbound.state import Desired, FlowEntry
from controlplane.southbound.status import Outcome, Result

_REVIEW_S = (0.2, 5.0)
"""Pause before another look at rows without room: where a table took more than last time, and else."""

_UNDER_WAY = 6
"""Writes of one phase that a switch has at a time: others while we make the next (``bench/write.py``)."""

_SLOW_S = 0.25
"""A switch that takes longer for a full Write has one at a time: a newer ranking waits for all under way."""

_SMALLER_S = 60.0
"""How long Writes stay smaller: that an answer did not fit may have had another cause, which is gone."""

_ROUNDS = 3
"""Times that rows are chosen anew in one go because a table took fewer than thought."""


@dataclass(slots=True)
class Request:
    """One ``apply`` of a switch, and how far it has come."""

    desired: Desired
    done: asyncio.Future[Outcome]
    since: float = field(default_factory=time.monotonic)
    flip_s: float | None = None
    updates: int = 0

    def finish(self, result: Result, refused: int = 0, error: str | None = None) -> None:
        """Resolve it, once."""
        if not self.done.done():
            total_s = time.monotonic() - self.since
            self.done.set_result(Outcome(result, self.flip_s, total_s, self.updates, refused, error))


class _Write(NamedTuple):
    """One that is under way since ``begun``, behind ``ahead`` others."""

    changes: list[Change]
    answer: asyncio.Task[dict[int, P4Error]]
    begun: float
    ahead: int


class Writer:
    """Writes requests to one switch, and knows what it has room for.

    ``read_back`` makes a new ledger from what the switch holds. ``newer`` says whether another request waits.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        read_back: Callable[[Device], Awaitable[Ledger]],
        newer: Callable[[], bool],
        log: FilteringBoundLogger,
    ) -> None:
        self.room = Room(sizes)
        self.batch = MAX_UPDATES
        """Updates in a Write; fewer where the switch's answers do not fit their metadata."""
        self._smaller_until: float | None = None
        self._abreast = _UNDER_WAY
        """Writes of one phase that the switch now has at a time."""
        self._read_back = read_back
        self._newer = newer
        self._log = log
        self._wanted = tables.Wanted()
        self._settled: Mapping[FiveTuple, FlowEntry] | None = None
        self._kept: Collection[int] | None = None
        """The groups whose flows these are, where there is no room for all groups."""
        self._review_at: float | None = None

    def forget(self, *, pushed: bool = False) -> None:
        """Forget what the flow tables were settled at; and what they have room for, where they are new."""
        self._settled = None
        if pushed:
            self.room.forget()

    def review_in_s(self) -> float | None:
        """Return the seconds until rows that found no room are worth another look; None: there are none."""
        return None if self._review_at is None else max(0.0, self._review_at - time.monotonic())

    def refused(self, ledger: Ledger) -> dict[str, int]:
        """Return table -> wanted rows that the switch does not hold."""
        counts = {table: sum(groups.values()) for table, groups in self.room.left_out().items()}
        for table, _ in ledger.refused:
            counts[table] = counts.get(table, 0) + 1
        return counts

    def reason(self, ledger: Ledger) -> str | None:
        """Return why rows are not held, for a person; None where all are."""
        if ledger.refused:
            return ledger.reason
        for table, groups in self.room.left_out().items():
            left_out, held = sum(groups.values()), len(ledger.contents[table])
            return (
                f"{table}: no room for {left_out} of {left_out + held} flows ({ledger.reason or 'its size'})"
            )
        return None

    async def bring_up(self, device: Device, request: Request, ledger: Ledger) -> None:
        """Bring the switch to ``request``; a second surprise in what it holds counts as a refusal."""
        if self.review_in_s() == 0.0:
            self._settled = self._review_at = None
            self.room.try_more()
        if self._smaller_until is not None and time.monotonic() > self._smaller_until:
            self.batch, self._smaller_until = MAX_UPDATES, None
        strict = True
        while True:
            try:
                return await self._write_rounds(device, request, ledger, strict=strict)
            except DriftError as drift:
                strict = False
                self._log.warning("switch holds something else than thought", update=str(drift))
            except OverflowedError as overflow:
                if self.batch == 1:
                    raise
                self.batch //= 2
                self._smaller_until = time.monotonic() + _SMALLER_S
                self._log.warning("smaller writes for a while", updates=self.batch, reason=str(overflow))
            ledger = await self._read_back(device)

    async def _write_rounds(self, device: Device, request: Request, ledger: Ledger, *, strict: bool) -> None:
        for number in range(_ROUNDS):
            written = await self._write_plan(device, request, ledger, strict=strict)
            full = self.room.learn(ledger.take_no_room(), ledger.contents, made_way=number > 0)
            if not written:
                return request.finish(Result.SUPERSEDED)
            if not full:
                break
        self._forget_refusals(request.desired, ledger)
        if ledger.refused and request.updates:
            self._log.warning("entries refused", count=len(ledger.refused), last=ledger.reason)
        self._settled = request.desired.flows
        refused = sum(self.refused(ledger).values())
        if self.room.left_out():
            self._review_at = time.monotonic() + _REVIEW_S[0 if self.room.grew else 1]
        else:
            self._review_at = None
        return request.finish(Result.APPLIED, refused)

    async def _write_plan(self, device: Device, request: Request, ledger: Ledger, *, strict: bool) -> bool:
        """Write what differs, phase by phase; return False where something newer took over on the way."""
        desired = request.desired
        groups = self._groups(desired, ledger)
        all_fit = groups is None or desired.groups is None or len(groups) == len(desired.groups)
        kept = None if groups is None or all_fit else groups.keys()
        flows = None
        if desired.flows is not None and (desired.flows is not self._settled or kept != self._kept):
            flows = partial(self._flows, desired.flows, kept, ledger)
            self._settled = None  # what the flow tables have is of two requests, until all of it is written
        for phase in diff.plan(ledger.contents, self._wanted.setup(desired.setup), groups, flows):
            if not await self._write_phase(device, request, ledger, phase, strict=strict):
                return False
            if phase.step is Step.FLIP:
                if ("active_bank", ()) in ledger.refused:
                    raise SwitchError(f"the flip was refused ({ledger.reason})")
                request.flip_s = time.monotonic() - request.since
        self._kept = kept
        return True

    async def _write_phase(
        self, device: Device, request: Request, ledger: Ledger, phase: Phase, *, strict: bool
    ) -> bool:
        """Write the changes of ``phase``; return False where something newer took over on the way."""
        changes = ledger.worth_writing(phase.changes)
        superseded = False
        under_way: deque[_Write] = deque()
        try:
            while True:
                while len(under_way) < self._abreast and not superseded:
                    batch = list(islice(changes, self.batch))
                    if not batch:
                        break
                    answer = asyncio.create_task(device.write(device.prepare(batch)))
                    under_way.append(_Write(batch, answer, time.monotonic(), len(under_way)))
                    if len(batch) == self.batch:  # there may be a next: let this one out before it is made
                        await asyncio.sleep(0)
                        await asyncio.sleep(0)
                if not under_way:
                    return not superseded
                write = under_way.popleft()
                errors = await write.answer
                if len(write.changes) == self.batch:
                    each_s = (time.monotonic() - write.begun) / (write.ahead + 1)
                    self._abreast = 1 if each_s > _SLOW_S else _UNDER_WAY
                request.updates += len(write.changes)
                ledger.note(write.changes, errors, strict=strict)
                # A newer ranking goes before the rest of the flows; what was written is progress.
                superseded = self._newer() and phase.step > Step.FLIP
        except BaseException as error:
            # After these two the switch is read back: not before it has done with the other writes.
            if not isinstance(error, (DriftError, OverflowedError)):
                for write in under_way:
                    write.answer.cancel()
            await asyncio.gather(*(write.answer for write in under_way), return_exceptions=True)
            raise

    def _forget_refusals(self, desired: Desired, ledger: Ledger) -> None:
        """Forget refused rows that ``desired``, now written, does not have."""
        if not ledger.refused:
            return
        wanted = dict(self._wanted.setup(desired.setup))
        if desired.groups is not None:
            bank = tables.active_bank(ledger.contents)
            rows = tables.group_rows(desired.groups)
            wanted["group_level"] = {(bank, group): call for group, call in rows.items()}
        if desired.flows is not None:
            wanted |= self._wanted.flows(desired.flows)
        ledger.forget_unwanted(wanted)

    def _groups(self, desired: Desired, ledger: Ledger) -> Mapping[int, tables.Call] | None:
        if desired.groups is None:
            return None
        rows = tables.group_rows(desired.groups)
        if self.room.for_groups(len(rows)):
            return rows
        return self.room.groups(rows, tables.bank_rows(ledger.contents, tables.active_bank(ledger.contents)))

    def _flows(
        self,
        flows: Mapping[FiveTuple, FlowEntry],
        groups: Collection[int] | None,
        ledger: Ledger,
    ) -> Iterator[tables.Contents]:
        """Return the rows of the flow tables; in parts, made while the switch works, where all are new.

        Not where there are queue pairs: several flows may be one row, the last of them, wherever that is.
        """
        if groups is None and not any(ledger.contents[table] for table in tables.FLOW_TABLES):
            counts = tables.at_most(flows)
            pairs = any(counts[table] for table in tables.PAIR_TABLES)
            if not pairs and self.room.for_flows(counts):
                return tables.flow_rows_in_parts(flows, self.batch)
        return iter([self.room.flows(self._wanted.flows(flows), ledger.contents, groups)])
