"""The data plane's contract as OpenFlow 1.3 flow entries, and back. Pure: no messages, no I/O.

The contract's rows (`controlplane.southbound.tables`) become entries of a pipeline of six tables, whose
metadata field carries what the P4 program keeps in variables:

| table | name | match | does |
|---|---|---|---|
| 0 | bank | any; or the probes' DSCP | write the bank, go on; probes: write the control level, go to 3 |
| 1 | flow | 5-tuple | write the group |
| 2 | group | bank and group | write the level; a miss: the default level |
| 3 | level | level | ``set_queue``, ``set_field ip_dscp`` |
| 4 | route | destination | next hop's MAC address, TTL, egress port; or an ECMP group |
| 5 | port | egress port; and the probes' DSCP | output; a probe about to leave to a host: to the controller |

So a re-ranking is one flow-mod here too: the bank. What OpenFlow 1.3 has no words for is left out, and is
not missed: INT hops (see `controlplane.paths`), seeds, and per-flow state, hence reorder guard, slack
and bursts. Neither can it match a RoCEv2 queue pair, nor tell a pure ACK from data: the former is refused
with the reason; what goes against a flow goes at the flow's level, unless it is a flow of its own.

Source: OpenFlow Switch Specification 1.3.5, sections 5 (pipeline), 7.2.3 (match), 7.2.4 (instructions).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple, TypeAlias

from controlplane.southbound.tables import Call, Key

BANK, FLOW, GROUP, LEVEL, ROUTE, PORT = range(6)
"""The tables' numbers."""

IPV4, IPV6 = 0x0800, 0x86DD
_L4 = {6: "tcp", 17: "udp", 132: "sctp"}
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
    """``OFPAT_GROUP``."""

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
    """

    table: int
    priority: int
    match: tuple[tuple[str, Field], ...] = ()
    actions: tuple[Action, ...] = ()
    metadata: tuple[int, int] | None = None
    goto: int | None = None
    cookie: int = 0

    @property
    def key(self) -> tuple[int, int, tuple[tuple[str, Field], ...]]:
        """What makes two entries the same one: table, priority and match."""
        return self.table, self.priority, self.match


class UnsupportedError(ValueError):
    """A row that OpenFlow 1.3 cannot say; the text tells why."""


class _Part(NamedTuple):
    """A slice of the 64-bit metadata field."""

    shift: int
    bits: int

    def put(self, value: int) -> tuple[int, int]:
        return value << self.shift, ((1 << self.bits) - 1) << self.shift

    def get(self, metadata: int) -> int:
        return metadata >> self.shift & (1 << self.bits) - 1


_GROUP, _BANK, _LEVEL, _PORT = _Part(0, 16), _Part(16, 1), _Part(24, 8), _Part(32, 16)


def egress_port(metadata: int) -> int:
    """Return the egress port that a packet-in's metadata tells."""
    return _PORT.get(metadata)


def static(int_dscp: int) -> list[Flow]:
    """Return the entries that hold the pipeline together, whatever the rows; probes carry ``int_dscp``."""
    sunk = [
        Flow(PORT, 20, (("eth_type", kind), ("ip_dscp", int_dscp)), (Output(CONTROLLER),))
        for kind in (IPV4, IPV6)
    ]
    # Bank 0 is in force until another is, as in the P4 program.
    ways = [Flow(BANK, 0, goto=FLOW), Flow(FLOW, 0, goto=GROUP), Flow(LEVEL, 0, goto=ROUTE)]
    return [*ways, *sunk]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Rows to entries and back, for switches on which probes carry DSCP ``int_dscp``."""

    int_dscp: int

    def encode(self, table: str, key: Key, call: Call) -> list[Flow]:
        """Return the entries of a row; none for what OpenFlow has no words for and need not say.

        ``ecmp`` rows are not entries but buckets (`Ecmp`). Raises UnsupportedError.
        """
        match table:
            case "active_bank":
                return [Flow(BANK, 1, metadata=_BANK.put(call.args[0]), goto=FLOW)]
            case "flow_group_v4" | "flow_group_v6":
                return _flow(table, key, call)
            case "flow_group_qp_v4" | "flow_group_qp_v6":
                raise UnsupportedError("OpenFlow 1.3 cannot match a RoCEv2 queue pair")
            case "group_level":
                level, guard_us, slack_us = call.args
                value, mask = _both(_BANK.put(_exact(key[0])), _GROUP.put(_exact(key[1])))
                match_ = (("metadata", (value, mask)),)
                return [Flow(GROUP, 100, match_, (), _LEVEL.put(level), LEVEL, guard_us << 32 | slack_us)]
            case "default_level":
                return self._default_level(*call.args[:2])
            case "level_queue":
                return _level_queue(_exact(key[0]), *call.args)
            case "edge_port":
                port = _exact(key[0])
                match_ = (("metadata", _PORT.put(port)),)
                return [Flow(PORT, 10, match_, (Output(port),), cookie=int(call.action == "host_facing"))]
            case "int_sink":
                port = _exact(key[0])
                to = Output(port if call.action == "relay" else CONTROLLER)
                return [
                    Flow(
                        PORT,
                        30,
                        (("eth_type", kind), ("ip_dscp", self.int_dscp), ("metadata", _PORT.put(port))),
                        (to,),
                    )
                    for kind in (IPV4, IPV6)
                ]
            case "ipv4_lpm" | "ipv6_lpm":
                return [_route(table, key, call)]
            case _:  # burst_gap, ecmp_seed, int_node
                return []

    def may_hold(self, table: str, key: Key) -> list[Flow]:
        """Return entries with the keys of all that a row of that key may ever have become."""
        match table:
            case "level_queue":
                variants = [Call("set_queue", (0, 0, rewrite)) for rewrite in (0, 1)]
            case "flow_group_qp_v4" | "flow_group_qp_v6":
                return []
            case _:
                variants = [Call("", (0, 0, 0))]
        return [flow for call in variants for flow in self.encode(table, key, call)]

    def _default_level(self, level: int, control_level: int) -> list[Flow]:
        probes = [
            Flow(
                BANK,
                100,
                (("eth_type", kind), ("ip_dscp", self.int_dscp)),
                metadata=_LEVEL.put(control_level),
                goto=LEVEL,
            )
            for kind in (IPV4, IPV6)
        ]
        return [Flow(GROUP, 0, metadata=_LEVEL.put(level), goto=LEVEL, cookie=control_level), *probes]

    def decode(self, flows: Iterable[Flow]) -> tuple[dict[tuple[str, Key], Call], list[Flow]]:
        """Return the rows that ``flows`` are, and the entries that belong to none.

        A row of which not every entry is there, or is there but different, comes back as
        ``Call("incomplete")``: unlike anything wanted, so that it is written anew.
        """
        there = {flow.key: flow for flow in flows}
        rows: dict[tuple[str, Key], Call] = {}
        known = {flow.key for flow in static(self.int_dscp)}
        for flow in there.values():
            row = _row(flow)
            if row is None:
                continue
            table, key, call = row
            parts = self.encode(table, key, call)
            known.update(part.key for part in parts)
            complete = all(there.get(part.key) == part for part in parts)
            rows[table, key] = call if complete else Call("incomplete")
        return rows, [flow for flow in there.values() if flow.key not in known]


def _exact(value: int | tuple[int, int]) -> int:
    assert isinstance(value, int)
    return value


def _both(*parts: tuple[int, int]) -> tuple[int, int]:
    return sum(value for value, _ in parts), sum(mask for _, mask in parts)


def _address(version: int, value: int) -> str:
    return str(IPv4Address(value) if version == 4 else IPv6Address(value))


def _flow(table: str, key: Key, call: Call) -> list[Flow]:
    version = int(table[-1])
    source, destination, protocol, source_port, destination_port = (_exact(value) for value in key)
    group, slot, *_ = call.args
    ports = _L4.get(protocol)
    if ports is None:
        raise UnsupportedError(f"OpenFlow 1.3 cannot match the ports of IP protocol {protocol}")
    there = _five_tuple(version, ports, protocol, (source, destination), (source_port, destination_port))
    back = _five_tuple(version, ports, protocol, (destination, source), (destination_port, source_port))
    return [
        Flow(FLOW, priority, match, (), _GROUP.put(group), GROUP, slot)
        for priority, match in ((100, there), (90, back))
    ]


def _five_tuple(
    version: int, ports: str, protocol: int, addresses: tuple[int, int], numbers: tuple[int, int]
) -> tuple[tuple[str, Field], ...]:
    match: dict[str, Field] = {
        "eth_type": IPV4 if version == 4 else IPV6,
        "ip_proto": protocol,
        f"ipv{version}_src": _address(version, addresses[0]),
        f"ipv{version}_dst": _address(version, addresses[1]),
        f"{ports}_src": numbers[0],
        f"{ports}_dst": numbers[1],
    }
    return tuple(sorted(match.items()))


def _level_queue(level: int, queue: int, dscp: int, rewrite: int) -> list[Flow]:
    match = ("metadata", _LEVEL.put(level))
    cookie = queue << 8 | dscp << 1 | rewrite
    if not rewrite:
        return [Flow(LEVEL, 100, (match,), (SetQueue(queue),), goto=ROUTE, cookie=cookie)]
    actions = (SetQueue(queue), SetField("ip_dscp", dscp))
    return [
        Flow(LEVEL, 100, (("eth_type", kind), match), actions, goto=ROUTE, cookie=cookie)
        for kind in (IPV4, IPV6)
    ]


def _route(table: str, key: Key, call: Call) -> Flow:
    version = int(table[3])
    assert isinstance(key[0], tuple)
    value, length = key[0]
    bits = 32 if version == 4 else 128
    mask = (1 << length) - 1 << bits - length
    match: list[tuple[str, Field]] = [("eth_type", IPV4 if version == 4 else IPV6)]
    if length == bits:
        match.append((f"ipv{version}_dst", _address(version, value)))
    elif length:
        match.append((f"ipv{version}_dst", (_address(version, value), _address(version, mask))))
    priority = 1 + length
    match call.action:
        case "set_nhop":
            port, mac = call.args
            hop = (SetField("eth_dst", mac_text(mac)), DecrementTtl())
            return Flow(ROUTE, priority, tuple(match), hop, _PORT.put(port), PORT)
        case "set_ecmp":
            group, count = call.args
            return Flow(ROUTE, priority, tuple(match), (DecrementTtl(), Ecmp(group)), cookie=count)
        case _:
            return Flow(ROUTE, priority, tuple(match))


def mac_text(mac: int) -> str:
    """Write a MAC address, ``02:00:00:00:00:01``."""
    return ":".join(f"{byte:02x}" for byte in mac.to_bytes(6))


def _row(flow: Flow) -> tuple[str, Key, Call] | None:
    """Return the row that an entry is (a part of); None where it alone does not tell, or is nobody's."""
    match = dict(flow.match)
    metadata = flow.metadata[0] if flow.metadata else 0
    mask = match.get("metadata")
    marked = mask[0] if isinstance(mask, tuple) else mask
    through = marked if isinstance(marked, int) else 0
    match flow.table, flow.priority:
        case 0, 1:
            return "active_bank", (), Call("set_bank", (_BANK.get(metadata),))
        case 1, 100:
            return _flow_row(flow, match, _GROUP.get(metadata))
        case 2, 0:
            return "default_level", (), Call("set_default_level", (_LEVEL.get(metadata), flow.cookie))
        case 2, 100:
            key = (_BANK.get(through), _GROUP.get(through))
            args = (_LEVEL.get(metadata), flow.cookie >> 32, flow.cookie & 0xFFFFFFFF)
            return "group_level", key, Call("set_level", args)
        case 3, 100:
            args = (flow.cookie >> 8, flow.cookie >> 1 & 0x3F, flow.cookie & 1)
            return "level_queue", (_LEVEL.get(through),), Call("set_queue", args)
        case 4, _:
            return _route_row(flow, match)
        case 5, 10:
            facing = "host_facing" if flow.cookie else "fabric_facing"
            return "edge_port", (_PORT.get(through),), Call(facing)
        case 5, 30:
            relayed = flow.actions != (Output(CONTROLLER),)
            return "int_sink", (_PORT.get(through),), Call("relay" if relayed else "sink")
        case _:
            return None


def _flow_row(flow: Flow, match: Mapping[str, Field], group: int) -> tuple[str, Key, Call] | None:
    version = 4 if match.get("eth_type") == IPV4 else 6
    protocol = match.get("ip_proto")
    ports = _L4.get(protocol) if isinstance(protocol, int) else None
    names = (f"ipv{version}_src", f"ipv{version}_dst", "ip_proto", f"{ports}_src", f"{ports}_dst")
    values = [match.get(name) for name in names]
    address = IPv4Address if version == 4 else IPv6Address
    key = [int(address(value)) if isinstance(value, str) else value for value in values]
    if not all(isinstance(value, int) for value in key):
        return None
    return f"flow_group_v{version}", tuple(key), Call("set_group", (group, flow.cookie))  # type: ignore[arg-type]


def _route_row(flow: Flow, match: Mapping[str, Field]) -> tuple[str, Key, Call] | None:
    version = 4 if match.get("eth_type") == IPV4 else 6
    address = IPv4Address if version == 4 else IPv6Address
    to = match.get(f"ipv{version}_dst")
    value = to[0] if isinstance(to, tuple) else to
    prefix = (int(address(value)) if isinstance(value, str) else 0, flow.priority - 1)
    call = Call("drop")
    for action in flow.actions:
        match action:
            case Ecmp(group):
                call = Call("set_ecmp", (group, flow.cookie))
            case SetField("eth_dst", str(mac)) if flow.metadata:
                call = Call("set_nhop", (_PORT.get(flow.metadata[0]), int(mac.replace(":", ""), 16)))
    return f"ipv{version}_lpm", (prefix,), call


@dataclass(slots=True)
class EcmpGroups:
    """The ``ecmp`` rows, group by group: a group's buckets are written all at once."""

    members: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)
    """Group -> member -> (port, MAC address)."""

    def set(self, key: Key, call: Call | None) -> int:
        """Note a row, or that it is gone; return the group that it belongs to."""
        group, member = (_exact(value) for value in key)
        buckets = self.members.setdefault(group, {})
        if call is None:
            buckets.pop(member, None)
        else:
            port, mac = call.args
            buckets[member] = port, mac
        return group

    def buckets(self, group: int) -> Sequence[tuple[int, int]]:
        """Return (port, MAC address) of each member, in the members' order."""
        return [hop for _, hop in sorted(self.members.get(group, {}).items())]

    def rows(self) -> dict[tuple[str, Key], Call]:
        """Return all rows."""
        return {
            ("ecmp", (group, member)): Call("set_nhop", hop)
            for group, buckets in self.members.items()
            for member, hop in buckets.items()
        }
