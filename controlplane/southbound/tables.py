"""``Desired`` as rows of the data plane's tables, and back. Pure.

A row is (table, key) -> call, all plain integers in the order of the contract's columns, so that
comparing with what a switch reads back is comparing values, however the bytes were padded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from itertools import islice
from operator import countOf, itemgetter
from typing import NamedTuple, TypeAlias

from controlplane.model import FiveTuple
from controlplane.southbound.state import BANKS, FlowEntry, GroupLevel, Held, NextHop, Setup

Match: TypeAlias = "int | tuple[int, int]"
"""A key column: an exact value, or (value, prefix length)."""
Key: TypeAlias = tuple[Match, ...]
"""A row's key; () for the one row, the default action, of a table without one."""


class Call(NamedTuple):
    """An action with its parameters."""

    action: str
    args: tuple[int, ...] = ()


Rows: TypeAlias = dict[Key, Call]
Contents: TypeAlias = dict[str, Rows]
"""Table -> its rows."""

UDP, ROCEV2_PORT = 17, 4791

PAIR_TABLES = ("flow_group_qp_v4", "flow_group_qp_v6")
"""Flow tables of RoCEv2's queue pairs: their rows do not have the flow's source port."""
FLOW_TABLES = ("flow_group_v4", "flow_group_v6", *PAIR_TABLES)
ROUTE_TABLES = ("ipv4_lpm", "ipv6_lpm")
"""Tables that rely on one of those below, ``ecmp``."""
BASE_TABLES = (
    "level_queue",
    "default_level",
    "burst_gap",
    "edge_port",
    "int_sink",
    "int_node",
    "ecmp_seed",
    "ecmp",
)
"""Tables that others rely on, and the rest of the configuration's."""
FORWARDING_TABLES = (*ROUTE_TABLES, "ecmp", "ecmp_seed")
"""Tables that may be another controller's."""


def setup_rows(setup: Setup) -> Contents:
    """Return the rows of every table that the configuration alone decides; others' tables are not there."""
    rows: Contents = {table: {} for table in BASE_TABLES + ROUTE_TABLES}
    rows["default_level"][()] = Call("set_default_level", (setup.default_level, setup.control_level))
    rows["burst_gap"][()] = Call("set_burst_gap", (setup.burst_gap_us,))
    rows["int_node"][()] = Call("set_int_node", (setup.node_id,))
    for level, (queue, dscp) in setup.level_queue.items():
        rows["level_queue"][level,] = Call("set_queue", (queue, dscp or 0, int(dscp is not None)))
    for port in setup.host_ports:
        rows["edge_port"][port,] = Call("host_facing")
    for port in setup.fabric_ports:
        rows["edge_port"][port,] = Call("fabric_facing")
    for port in setup.guarded_ports:
        rows["edge_port"][port,] = Call("host_facing")
    for port in setup.fabric_ports | setup.guarded_ports:
        rows["int_sink"][port,] = Call("relay")
    if setup.routes is None:
        return {table: these for table, these in rows.items() if table not in FORWARDING_TABLES}
    rows["ecmp_seed"][()] = Call("set_seed", (setup.ecmp_seed,))
    ecmp_group: dict[tuple[NextHop, ...], int] = {}
    for network, hops in sorted(setup.routes.items(), key=lambda route: str(route[0])):
        prefix = (int(network.network_address), network.prefixlen)
        if not hops:
            call = Call("drop")
        elif len(hops) == 1:
            call = Call("set_nhop", (hops[0].port, _mac(hops[0].mac)))
        else:
            group = ecmp_group.setdefault(hops, len(ecmp_group) + 1)
            call = Call("set_ecmp", (group, len(hops)))
        rows[f"ipv{network.version}_lpm"][prefix,] = call
    for hops, group in ecmp_group.items():
        for member, hop in enumerate(hops):
            rows["ecmp"][group, member] = Call("set_nhop", (hop.port, _mac(hop.mac)))
    return rows


def flow_rows(flows: Mapping[FiveTuple, FlowEntry]) -> Contents:
    """Return the rows of the four flow tables."""
    return _flow_rows(flows.items())


def flow_rows_in_parts(flows: Mapping[FiveTuple, FlowEntry], size: int) -> Iterator[Contents]:
    """Yield the rows of the flow tables, of ``size`` flows at a time."""
    left = iter(flows.items())
    for _ in range(0, len(flows), size):
        yield _flow_rows(islice(left, size))


def _flow_rows(flows: Iterable[tuple[FiveTuple, FlowEntry]]) -> Contents:
    rows: Contents = {table: {} for table in FLOW_TABLES}
    of_kind = {
        IPv4Address: (rows["flow_group_v4"], rows["flow_group_qp_v4"]),
        IPv6Address: (rows["flow_group_v6"], rows["flow_group_qp_v6"]),
    }
    for (source, destination, protocol, source_port, destination_port, qp), entry in flows:
        five_tuples, queue_pairs = of_kind[type(source)]
        # Call("set_group", entry) in a third of the time: there may be 100,000 of them.
        call = tuple.__new__(Call, ("set_group", entry))
        if qp:
            queue_pairs[int(source), int(destination), qp] = call
        else:
            five_tuples[int(source), int(destination), protocol, source_port, destination_port] = call
    return rows


def at_most(flows: Mapping[FiveTuple, FlowEntry]) -> dict[str, int]:
    """Return flow table -> rows that it gets of ``flows`` at most: told faster than the rows are made."""
    v6 = countOf(map(type, map(itemgetter(0), flows)), IPv6Address)
    pairs = len(flows) - countOf(map(itemgetter(5), flows), 0)
    there = {"v4": len(flows) - v6, "v6": v6}
    return {f"flow_group_{name}": count for name, count in there.items()} | {
        f"flow_group_qp_{name}": min(count, pairs) for name, count in there.items()
    }


def group_rows(groups: Mapping[int, GroupLevel]) -> dict[int, Call]:
    """Return group -> call, for either bank of ``group_level``."""
    return {group: _set_level(level) for group, level in groups.items()}


@lru_cache(maxsize=4096)
def _set_level(level: GroupLevel) -> Call:
    return Call("set_level", level)


def bank_rows(contents: Contents, bank: int) -> dict[int, Call]:
    """Return group -> call in one bank of ``group_level``."""
    return {
        key[1]: call  # type: ignore[misc]  # group_level's columns are exact
        for key, call in contents["group_level"].items()
        if key[0] == bank and call.action == "set_level"
    }


def active_bank(contents: Contents) -> int:
    """Return the bank in force; the program starts with 0."""
    call = contents["active_bank"].get(())
    return call.args[0] if call and call.action == "set_bank" and call.args[0] in BANKS else 0


def held(contents: Contents) -> Held:
    """Return the flows and the ranking in force.

    A queue pair's row does not have the 5-tuple's ports: its flow comes back with source port 0.
    """
    bank = active_bank(contents)
    groups = {group: GroupLevel(*call.args) for group, call in bank_rows(contents, bank).items()}
    return Held(dict(_flows(contents)), groups, bank)


def _flows(contents: Contents) -> Iterator[tuple[FiveTuple, FlowEntry]]:
    for table in FLOW_TABLES:
        for key, call in contents[table].items():
            if call.action == "set_group":
                yield flow_of(table, key), FlowEntry(*call.args)


def flow_of(table: str, key: Key) -> FiveTuple:
    """Return the flow of a row of a flow table; see ``held`` for queue pairs."""
    address = IPv4Address if table.endswith("v4") else IPv6Address
    source, destination, *rest = (value for value in key if isinstance(value, int))
    if len(rest) == 1:
        return FiveTuple(address(source), address(destination), UDP, 0, ROCEV2_PORT, rest[0])
    protocol, source_port, destination_port = rest
    return FiveTuple(address(source), address(destination), protocol, source_port, destination_port)


def _mac(text: str) -> int:
    return int(text.replace(":", ""), 16)


class Wanted:
    """``Desired`` as rows; what did not change since the last one is not worked out again."""

    def __init__(self) -> None:
        self._setup: tuple[Setup, Contents] | None = None
        self._flows: tuple[Mapping[FiveTuple, FlowEntry], Contents] | None = None

    def setup(self, setup: Setup) -> Contents:
        """Return ``setup_rows``."""
        if self._setup is None or self._setup[0] is not setup:
            self._setup = (setup, setup_rows(setup))
        return self._setup[1]

    def flows(self, flows: Mapping[FiveTuple, FlowEntry]) -> Contents:
        """Return ``flow_rows``."""
        if self._flows is None or self._flows[0] is not flows:
            self._flows = (flows, flow_rows(flows))
        return self._flows[1]
