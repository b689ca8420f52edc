"""OpenFlow entries as rows of the contract: the way back from `controlplane.openflow.pipeline`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address

from controlplane.openflow import entries
from controlplane.openflow.entries import (
    BANK_OF,
    CONTROLLER,
    GROUP_OF,
    IPV4,
    LEVEL_OF,
    PORT_OF,
    PORTS_OF,
    Ecmp,
    Field,
    Flow,
    Output,
    SetField,
)
from controlplane.southbound.tables import Call, Key


def row_of(flow: Flow) -> tuple[str, Key, Call] | None:
    """Return the row that an entry is (a part of); None where it alone does not tell, or is nobody's."""
    match = dict(flow.match)
    metadata = flow.metadata[0] if flow.metadata else 0
    mask = match.get("metadata")
    marked = mask[0] if isinstance(mask, tuple) else mask
    through = marked if isinstance(marked, int) else 0
    match flow.table, flow.priority:
        case entries.EDGE, 20:
            return _edge_row(match)
        case entries.BANK, 1:
            return "active_bank", (), Call("set_bank", (BANK_OF.get(metadata),))
        case entries.FLOW, 100:
            return _flow_row(flow, match, GROUP_OF.get(metadata))
        case entries.GROUP, 0:
            return "default_level", (), Call("set_default_level", (LEVEL_OF.get(metadata), flow.cookie))
        case entries.GROUP, 100:
            key = (BANK_OF.get(through), GROUP_OF.get(through))
            args = (LEVEL_OF.get(metadata), flow.cookie >> 32, flow.cookie & 0xFFFFFFFF)
            return "group_level", key, Call("set_level", args)
        case entries.LEVEL, 100:
            args = (flow.cookie >> 8, flow.cookie >> 1 & 0x3F, flow.cookie & 1)
            return "level_queue", (LEVEL_OF.get(through),), Call("set_queue", args)
        case entries.ROUTE, _:
            return _route_row(flow, match)
        case entries.PORT, 10:
            facing = "host_facing" if flow.cookie else "fabric_facing"
            return "edge_port", (PORT_OF.get(through),), Call(facing)
        case entries.PORT, 30:
            relayed = flow.actions != (Output(CONTROLLER),)
            return "int_sink", (PORT_OF.get(through),), Call("relay" if relayed else "sink")
        case _:
            return None


def _edge_row(match: Mapping[str, Field]) -> tuple[str, Key, Call] | None:
    port = match.get("in_port")
    if not isinstance(port, int) or port >= 1 << PORT_OF.bits:  # such as LOCAL
        return None
    return "edge_port", (port,), Call("host_facing" if "ip_dscp" in match else "fabric_facing")


def _flow_row(flow: Flow, match: Mapping[str, Field], group: int) -> tuple[str, Key, Call] | None:
    version = 4 if match.get("eth_type") == IPV4 else 6
    protocol = match.get("ip_proto")
    ports = PORTS_OF.get(protocol) if isinstance(protocol, int) else None
    names = (f"ipv{version}_src", f"ipv{version}_dst", "ip_proto", f"{ports}_src", f"{ports}_dst")
    values = [match.get(name) for name in names]
    address = IPv4Address if version == 4 else IPv6Address
    key = [int(address(value)) if isinstance(value, str) else value for value in values]
    if not all(isinstance(value, int) for value in key):
        return None
    return f"flow_group_v{version}", tuple(key), Call("set_group", (group, flow.cookie))  # type: ignore[arg-type]


def _route_row(flow: Flow, match: Mapping[str, Field]) -> tuple[str, Key, Call] | None:
    version, bits = (4, 32) if match.get("eth_type") == IPV4 else (6, 128)
    length = flow.priority - 1
    if not 0 <= length <= bits:
        return None
    address = IPv4Address if version == 4 else IPv6Address
    to = match.get(f"ipv{version}_dst")
    value = to[0] if isinstance(to, tuple) else to
    prefix = (int(address(value)) if isinstance(value, str) else 0, length)
    call = Call("drop")
    for action in flow.actions:
        match action:
            case Ecmp(group):
                call = Call("set_ecmp", (group, flow.cookie))
            case SetField("eth_dst", str(mac)) if flow.metadata:
                call = Call("set_nhop", (PORT_OF.get(flow.metadata[0]), int(mac.replace(":", ""), 16)))
    return f"ipv{version}_lpm", (prefix,), call
