"""What one switch is to hold, as plain data: the controller's side of the data-plane contract.

Immutable values, no I/O and no P4Runtime. ``Desired`` is what the controller wants of one switch, in its
own words (flows, groups, levels, routes); ``tables.py`` turns it into table entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from typing import NamedTuple

from controlplane.model import FiveTuple

BANKS = (0, 1)
"""The two copies of ``group_level``: one is in force, the next ranking is written into the other."""


class FlowEntry(NamedTuple):
    """Where a flow belongs on this switch: its group's number and its slot in the per-flow registers."""

    group: int
    slot: int


class GroupLevel(NamedTuple):
    """A group's level on this switch, with its reorder guard and slack in microseconds (0 = off)."""

    level: int
    guard_us: int = 0
    slack_us: int = 0


class LevelQueue(NamedTuple):
    """The switch's queue for a level, and the DSCP to write into its packets (None = leave it alone)."""

    queue: int
    dscp: int | None = None


class NextHop(NamedTuple):
    """An egress port and the MAC address behind it, ``"02:00:00:00:00:01"``."""

    port: int
    mac: str


Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class Setup:
    """What the configuration file says about one switch; it changes only with that file.

    ``level_queue``: level -> queue, for every level that is ever installed.
    ``default_level``: of traffic that no flow entry knows; ``control_level``: of ARP, routing, CNP, pure
    ACKs and probes.
    ``burst_gap_us``: a pause at least this long in a flow starts a new burst.
    ``node_id``: the switch's number in INT stacks, unique in the fabric.
    ``host_ports``: not trusted, and where probes are sunk; ``fabric_ports``: to other switches.
    ``guarded_ports``: to switches that add no hops to probes, so that none may come from there that has any.
    ``routes``: prefix -> next hops; more than one are ECMP, hashed with ``ecmp_seed``. None: forwarding is
    another controller's, and its tables are left alone.
    """

    level_queue: Mapping[int, LevelQueue]
    node_id: int
    host_ports: frozenset[int]
    fabric_ports: frozenset[int] = frozenset()
    routes: Mapping[Network, tuple[NextHop, ...]] | None = field(default_factory=dict)
    ecmp_seed: int = 0
    default_level: int = 0
    control_level: int = 0
    burst_gap_us: int = 0
    guarded_ports: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Desired:
    """All that one switch should hold.

    ``flows`` and ``groups`` None mean: leave those that are there as they are (a controller that has just
    started and has not heard its agents yet). Pass the same mapping object again where nothing in it
    changed, and never alter one that was passed: that is what makes a re-ranking cheap with many flows.
    Where a table has no room for all flows, `Fabric.prefer` says whose keep their entries.
    A flow whose group has no entry in ``groups`` runs at the switch's default level.
    """

    setup: Setup
    flows: Mapping[FiveTuple, FlowEntry] | None = None
    groups: Mapping[int, GroupLevel] | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """Flows and ranking that a switch really holds, as read back or as acknowledged since."""

    flows: Mapping[FiveTuple, FlowEntry]
    groups: Mapping[int, GroupLevel]
    active_bank: int
