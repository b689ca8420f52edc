"""The data plane's contract as OpenFlow 1.3 flow entries. Pure: no messages, no I/O.

The contract's rows (`controlplane.southbound.tables`) become entries of a pipeline of seven tables, whose
metadata field carries what the P4 program keeps in variables:

| table | name | match | does |
|---|---|---|---|
| 0 | edge | ingress port, the probes' DSCP | of a host: TCP, UDP through the port's meter; else drop |
| 1 | bank | any; or the probes' DSCP | write the bank, go on; probes: write the control level, go to 4 |
| 2 | flow | 5-tuple | write the group |
| 3 | group | bank and group | write the level; a miss: the default level |
| 4 | level | level | ``set_queue``, ``set_field ip_dscp`` |
| 5 | route | destination | next hop's MAC address, TTL, egress port; or an ECMP group |
| 6 | port | egress port; and the probes' DSCP | output; a probe about to leave to a host: to the controller |

So a re-ranking is one flow-mod here too: the bank. What OpenFlow 1.3 has no words for is left out, and is
not missed: INT hops (see `controlplane.paths`), seeds, and per-flow state, hence reorder guard, slack
and bursts. Neither can it match a RoCEv2 queue pair, nor tell a pure ACK from data: the former is refused
with the reason; what goes against a flow goes at the flow's level, unless it is a flow of its own. Nor does
it see whether a probe is fresh, its stack empty: the next P4 switch does (`Setup.guarded_ports`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from controlplane.openflow.counts import COUNTED
from controlplane.openflow.decode import row_of
from controlplane.openflow.entries import (
    BANK,
    BANK_OF,
    CONTROLLER,
    EDGE,
    FLOW,
    GROUP,
    GROUP_OF,
    IPV4,
    IPV6,
    LEVEL,
    LEVEL_OF,
    PORT,
    PORT_OF,
    PORTS_OF,
    ROUTE,
    DecrementTtl,
    Ecmp,
    Field,
    Flow,
    Output,
    SetField,
    SetQueue,
    UnsupportedError,
    mac_text,
)
from controlplane.southbound.tables import Call, Key

_PROBED = (6, 17)
"""IP protocols that probes are of."""


def static(int_dscp: int) -> list[Flow]:
    """Return the entries that hold the pipeline together, whatever the rows; probes carry ``int_dscp``."""
    sunk = [
        Flow(PORT, 20, (("eth_type", kind), ("ip_dscp", int_dscp)), (Output(CONTROLLER),))
        for kind in (IPV4, IPV6)
    ]
    refused = [Flow(EDGE, 10, (("eth_type", kind), ("ip_dscp", int_dscp))) for kind in (IPV4, IPV6)]
    # Bank 0 is in force until another is, as in the P4 program.
    ways = [Flow(table, 0, goto=then) for table, then in ((EDGE, BANK), (BANK, FLOW), (FLOW, GROUP))]
    return [*ways, Flow(LEVEL, 0, goto=ROUTE), *refused, *sunk]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Rows to entries and back, for switches on which probes carry DSCP ``int_dscp``.

    A host's probes pass the meter whose number is their port's, where that is not above ``max_meter``.
    """

    int_dscp: int
    max_meter: int = 0xFFFF0000

    def encode(self, table: str, key: Key, call: Call) -> list[Flow]:
        """Return the entries of a row; none for what OpenFlow has no words for and need not say.

        ``ecmp`` rows are not entries but buckets (`Ecmp`). Raises UnsupportedError.
        """
        match table:
            case "active_bank":
                return [Flow(BANK, 1, metadata=BANK_OF.put(call.args[0]), goto=FLOW)]
            case "flow_group_v4" | "flow_group_v6":
                return _flow(table, key, call)
            case "flow_group_qp_v4" | "flow_group_qp_v6":
                raise UnsupportedError("OpenFlow 1.3 cannot match a RoCEv2 queue pair")
            case "group_level":
                level, guard_us, slack_us = call.args
                value, mask = _both(BANK_OF.put(_exact(key[0])), GROUP_OF.put(_exact(key[1])))
                match_ = (("metadata", (value, mask)),)
                return [Flow(GROUP, 100, match_, (), LEVEL_OF.put(level), LEVEL, guard_us << 32 | slack_us)]
            case "default_level":
                return self._default_level(*call.args[:2])
            case "level_queue":
                return _level_queue(_exact(key[0]), *call.args)
            case "edge_port":
                return self._edge_port(_exact(key[0]), host=call.action == "host_facing")
            case "int_sink":
                port = _exact(key[0])
                to = Output(port if call.action == "relay" else CONTROLLER)
                return [
                    Flow(
                        PORT,
                        30,
                        (("eth_type", kind), ("ip_dscp", self.int_dscp), ("metadata", PORT_OF.put(port))),
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
            case "edge_port":
                variants = [Call("host_facing"), Call("fabric_facing")]
            case "flow_group_qp_v4" | "flow_group_qp_v6":
                return []
            case _:
                variants = [Call("", (0, 0, 0))]
        return [flow for call in variants for flow in self.encode(table, key, call)]

    def _edge_port(self, port: int, *, host: bool) -> list[Flow]:
        out = Flow(PORT, 10, (("metadata", PORT_OF.put(port)),), (Output(port),), cookie=int(host))
        if not host:
            return [Flow(EDGE, 20, (("in_port", port),), goto=BANK), out]
        meter = port if port <= self.max_meter else None
        return [
            Flow(
                EDGE,
                20,
                (("eth_type", kind), ("in_port", port), ("ip_dscp", self.int_dscp), ("ip_proto", protocol)),
                goto=BANK,
                meter=meter,
            )
            for kind in (IPV4, IPV6)
            for protocol in _PROBED
        ] + [out]

    def _default_level(self, level: int, control_level: int) -> list[Flow]:
        probes = [
            Flow(
                BANK,
                100,
                (("eth_type", kind), ("ip_dscp", self.int_dscp)),
                metadata=LEVEL_OF.put(control_level),
                goto=LEVEL,
            )
            for kind in (IPV4, IPV6)
        ]
        return [Flow(GROUP, 0, metadata=LEVEL_OF.put(level), goto=LEVEL, cookie=control_level), *probes]

    def decode(self, flows: Iterable[Flow]) -> tuple[dict[tuple[str, Key], Call], list[Flow]]:
        """Return the rows that ``flows`` are, and the entries that belong to none: they are somebody else's.

        A row of which not every entry is there, or is there but different, comes back as
        ``Call("incomplete")``: unlike anything wanted, so that it is written anew.
        """
        there = {flow.key: flow for flow in flows}
        rows: dict[tuple[str, Key], Call] = {}
        known = {flow.key for flow in static(self.int_dscp)}
        for flow in there.values():
            try:
                row = row_of(flow)
                if row is None:
                    continue
                table, key, call = row
                parts = self.encode(table, key, call)
                keys = {part.key for part in parts}
                if flow.key not in keys and flow.key not in {each.key for each in self.may_hold(table, key)}:
                    continue
            except ValueError:
                continue  # it says what no entry of ours does
            known |= keys
            complete = all(there.get(part.key) == part for part in parts)
            # Entries of two calls of one row: what another call has left is in the way.
            complete = complete and rows.get((table, key), call) == call
            rows[table, key] = call if complete else Call("incomplete")
        return rows, [flow for flow in there.values() if flow.key not in known]

    def partial(
        self, rows: Mapping[tuple[str, Key], Call], flows: Iterable[Flow]
    ) -> dict[tuple[str, Key], int]:
        """Return row -> its entries among ``flows`` that are counted, for the rows that are not whole.

        ``rows`` are those that ``flows`` are.
        """
        there = {flow.key for flow in flows if flow.table in COUNTED}
        # These two are always replaced, never inserted: they are thought to be there from the start.
        odd = {row for row, call in rows.items() if call.action == "incomplete"}
        odd |= {("active_bank", ()), ("default_level", ())} - rows.keys()
        return {row: sum(part.key in there for part in self.may_hold(*row)) for row in odd}


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
    ports = PORTS_OF.get(protocol)
    if ports is None:
        raise UnsupportedError(f"OpenFlow 1.3 cannot match the ports of IP protocol {protocol}")
    there = _five_tuple(version, ports, protocol, (source, destination), (source_port, destination_port))
    back = _five_tuple(version, ports, protocol, (destination, source), (destination_port, source_port))
    return [
        Flow(FLOW, priority, match, (), GROUP_OF.put(group), GROUP, slot)
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
    match = ("metadata", LEVEL_OF.put(level))
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
            return Flow(ROUTE, priority, tuple(match), hop, PORT_OF.put(port), PORT)
        case "set_ecmp":
            group, count = call.args
            return Flow(ROUTE, priority, tuple(match), (DecrementTtl(), Ecmp(group)), cookie=count)
        case _:
            return Flow(ROUTE, priority, tuple(match))
