"""OpenFlow 1.3 flow entries as values: what `controlplane.openflow.pipeline` is written in. Pure.

Source: OpenFlow Switch Specification 1.3.5, sections 5 (pipeline), 7.2.3 (match), 7.2.4 (instructions).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

EDGE, BANK, FLOW, GROUP, LEVEL, ROUTE, PORT = range(7)
"""The tables' numbers."""

PROBES_A_SECOND, PROBES_AT_ONCE = 200, 1000
"""What a host's port may send of what is marked as probes: a job of 1,000 new flows at once, and then few."""

ECMP_GROUPS = 0x4C560000
"""The first of the 65,536 group numbers of the switch's that are ours; the others are somebody else's."""

IPV4, IPV6 = 0x0800, 0x86DD
PORTS_OF = {6: "tcp", 17: "udp", 132: "sctp"}
"""IP protocol -> prefix of the match fields of its ports."""

Value: TypeAlias = "int | str"
Field: TypeAlias = "Value | tuple[Value, Value]"
"""A match field: a value, or (value, mask)."""


class SetQueue(NamedTuple):
    """``OFPAT_SET_QUEUE``."""

    queue: int


class SetField(NamedTuple):
    """``OFPAT_SET_FIELD``."""

    name: str
    value: Value


class Output(NamedTuple):
    """``OFPAT_OUTPUT``; port ``CONTROLLER`` sends the whole packet there."""

    port: int


class Ecmp(NamedTuple):
    """``OFPAT_GROUP``; ``group`` is the contract's number, the switch's is ``ECMP_GROUPS`` more."""

    group: int


class DecrementTtl(NamedTuple):
    """``OFPAT_DEC_NW_TTL``."""


Action: TypeAlias = SetQueue | SetField | Output | Ecmp | DecrementTtl

CONTROLLER = 0xFFFFFFFD
"""``OFPP_CONTROLLER``."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow entry. ``metadata`` is (value, mask) to write; ``goto`` the table that comes next.

    ``cookie`` carries what the contract says and OpenFlow has no place for, so that it can be read back.
    ``meter`` is what a packet passes first, and may be dropped by.
    """

    table: int
    priority: int
    match: tuple[tuple[str, Field], ...] = ()
    actions: tuple[Action, ...] = ()
    metadata: tuple[int, int] | None = None
    goto: int | None = None
    cookie: int = 0
    meter: int | None = None

    @property
    def key(self) -> tuple[int, int, tuple[tuple[str, Field], ...]]:
        """What makes two entries the same one: table, priority and match."""
        return self.table, self.priority, self.match


class UnsupportedError(ValueError):
    """A row that OpenFlow 1.3 cannot say; the text tells why."""


class Part(NamedTuple):
    """A slice of the 64-bit metadata field."""

    shift: int
    bits: int

    def put(self, value: int) -> tuple[int, int]:
        """Return (value, mask) of the whole field."""
        return value << self.shift, ((1 << self.bits) - 1) << self.shift

    def get(self, metadata: int) -> int:
        """Return the slice's value."""
        return metadata >> self.shift & (1 << self.bits) - 1


GROUP_OF, BANK_OF, LEVEL_OF, PORT_OF = Part(0, 16), Part(16, 1), Part(24, 8), Part(32, 16)


def egress_port(metadata: int) -> int:
    """Return the egress port that a packet-in's metadata tells."""
    return PORT_OF.get(metadata)


def mac_text(mac: int) -> str:
    """Write a MAC address, ``02:00:00:00:00:01``."""
    return ":".join(f"{byte:02x}" for byte in mac.to_bytes(6))
