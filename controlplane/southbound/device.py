"""What a session needs of a switch, whatever the switch speaks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from finsy.p4client import P4Error

from controlplane.int_report import Hop
from controlplane.southbound.diff import Change
from controlplane.southbound.tables import Call, Key

OnPacket: TypeAlias = Callable[[bytes, "Hop | None"], None]
"""Called with a sunk probe, and with the hop of a switch that could not add it to the probe itself."""


class Device(Protocol):
    """One session. Every method may raise SwitchError, after which the session is of no more use."""

    @property
    def primary(self) -> bool:
        """Whether this controller may write."""

    async def open(self) -> None:
        """Connect, and find out whether this controller is the primary."""

    async def close(self) -> None:
        """Disconnect; what is under way ends with an error."""

    async def listen(self, on_role: Callable[[], None], on_packet: OnPacket) -> None:
        """Hand on what the switch says by itself, for as long as the session lives.

        ``on_role`` is called when this controller becomes the primary or a backup.
        """

    async def ensure_pipeline(self) -> bool:
        """Give the switch its program where it has another; return whether it was given."""

    def prepare(self, changes: Sequence[Change]) -> Sequence[Any]:
        """Return what `write` takes for ``changes``, which do not depend on each other."""

    async def write(self, updates: Sequence[Any], /) -> dict[int, P4Error]:
        """Write what `prepare` made; return position -> error of those that failed.

        Raises LostPrimacyError, and OverflowedError where it is not known which of them failed.
        """

    def rows(
        self, tables: Collection[str] | None = None, deadline_s: float | None = None
    ) -> AsyncIterator[tuple[str, Key, Call]]:
        """Yield (table, key, call) of what the switch holds in ``tables``; None: in all of the contract."""


@dataclass(frozen=True, slots=True)
class Driver:
    """How to reach one switch: ``connect`` makes a new session each time.

    ``address`` is for people. ``sizes``: table -> rows that it says it has room for. ``looked_in``: tables
    that are read every few seconds: small ones, the bank to tell who has written, and one that is never
    empty to tell whether the tables were emptied. ``looked_through``: long ones that others may alter, which
    are read with them where that does not take too much of the time.
    """

    name: str
    address: str
    connect: Callable[[], Device]
    sizes: Mapping[str, int]
    looked_in: Collection[str] = ("active_bank", "level_queue")
    looked_through: Collection[str] = ()
