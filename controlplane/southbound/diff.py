"""From what a switch holds to what it should hold: ordered phases of changes. Pure.

The updates of one Write may be applied in any order (P4Runtime specification, 12.2), so whatever depends
on something else is in a later phase, which the session writes only when the one before is acknowledged:

1. what others rely on (queues of levels, ECMP members), then routes;
2. the new ranking into the bank that is not in force, then the flip: one write, and the ranking is in
   force as a whole. A controller that dies before it leaves the old one whole;
3. flows that are gone, then flows that are new or moved: theirs are groups that the bank in force knows;
4. what nothing points at any more.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from controlplane.southbound.tables import (
    BASE_TABLES,
    FLOW_TABLES,
    ROUTE_TABLES,
    Call,
    Contents,
    Key,
    Match,
    Rows,
    active_bank,
)


class Change(NamedTuple):
    """One update. ``call`` None deletes the row; ``replace`` tells a modification from an insertion."""

    table: str
    key: Key
    call: Call | None
    replace: bool = True


class Step(enum.IntEnum):
    """The phases, in the order they are written."""

    BASE = enum.auto()
    ROUTES = enum.auto()
    UNROUTE = enum.auto()
    BANK = enum.auto()
    FLIP = enum.auto()
    FLOWS_GONE = enum.auto()
    FLOWS = enum.auto()
    CLEANUP = enum.auto()


@dataclass(frozen=True, slots=True)
class Phase:
    """Changes that do not depend on each other, at least one; they can be gone through once."""

    step: Step
    changes: Iterator[Change]


def plan(
    installed: Contents,
    setup: Contents,
    groups: Mapping[int, Call] | None,
    flows: Callable[[], Iterator[Contents]] | None,
) -> Iterator[Phase]:
    """Yield the phases, none of them empty, from ``installed`` to what is wanted.

    ``setup``: the rows of the base and route tables; a table that it lacks is left alone. ``groups``:
    group -> call of the ranking; None leaves both banks alone. ``flows`` makes the rows of the flow tables,
    after the flip, which many flows must not delay, in parts, but all at once where the switch holds any;
    None leaves those tables alone. Each phase is worked out
    when it is asked for, from what ``installed`` holds then: the caller writes a phase and notes it with
    `apply` before it takes the next.
    """
    yield from _phase(Step.BASE, _upserts(BASE_TABLES, installed, setup))
    yield from _phase(Step.ROUTES, _upserts(ROUTE_TABLES, installed, setup))
    yield from _phase(Step.UNROUTE, _deletes(ROUTE_TABLES, installed, setup))
    if groups is not None:
        yield from _ranking(installed, groups)
    if flows is not None:
        parts = flows()
        first = next(parts, {})
        yield from _phase(Step.FLOWS_GONE, _deletes(FLOW_TABLES, installed, first))
        rows = (_upserts(FLOW_TABLES, installed, part) for part in chain((first,), parts))
        yield from _phase(Step.FLOWS, chain.from_iterable(rows))
    unused: Iterable[Change] = ()
    if groups is not None:
        unused = (Change("group_level", key, None) for key in _leaving(installed["group_level"], groups))
    yield from _phase(Step.CLEANUP, chain(unused, _deletes(BASE_TABLES, installed, setup)))


def apply(installed: Contents, changes: Iterable[Change]) -> None:
    """Note in ``installed`` that the switch acknowledged ``changes``."""
    for table, key, call, _ in changes:
        if call is None:
            installed[table].pop(key, None)
        else:
            installed[table][key] = call


def _phase(step: Step, changes: Iterable[Change]) -> Iterator[Phase]:
    worked_out = iter(changes)
    for first in worked_out:
        yield Phase(step, chain((first,), worked_out))


def _ranking(installed: Contents, groups: Mapping[int, Call]) -> Iterator[Phase]:
    have = installed["group_level"]
    bank = active_bank(installed)
    if all(have.get((bank, group)) == call for group, call in groups.items()):
        return
    # Groups on their way out go along unchanged: their flows are moved only after the flip.
    along = ((key[1], have[key]) for key in _leaving(have, groups) if key[0] == bank)
    yield from _phase(Step.BANK, _into_bank(1 - bank, have, chain(groups.items(), along)))
    yield from _phase(Step.FLIP, [Change("active_bank", (), Call("set_bank", (1 - bank,)))])


def _leaving(have: Rows, groups: Mapping[int, Call]) -> list[Key]:
    return [key for key in have if key[1] not in groups]


def _into_bank(bank: int, have: Rows, ranking: Iterable[tuple[Match, Call]]) -> Iterator[Change]:
    for group, call in ranking:
        key = (bank, group)
        old = have.get(key)
        if old != call and call.action == "set_level":
            yield Change("group_level", key, call, old is not None)


def _upserts(tables: tuple[str, ...], installed: Contents, contents: Contents) -> Iterator[Change]:
    for table in tables:
        have = installed[table]
        for key, call in contents.get(table, {}).items():
            old = have.get(key)
            if old != call:
                # A table without a key has its one row from the start.
                there = old is not None or key == ()
                # Change(...) in half the time: there may be 100,000 of them.
                yield tuple.__new__(Change, (table, key, call, there))


def _deletes(tables: tuple[str, ...], installed: Contents, contents: Contents) -> Iterator[Change]:
    for table in tables:
        for key in installed[table].keys() - contents.get(table, installed[table]).keys():
            if key != ():
                yield Change(table, key, None)
