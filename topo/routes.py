"""Shortest-path routes of a fabric: what each switch's L3 tables hold."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx

from topo.fabric import ROUTER_MAC, Fabric, Switch


@dataclass(frozen=True, slots=True)
class NextHop:
    """Out of which port, and the destination MAC of what leaves there."""

    port: int
    mac: str


@dataclass(frozen=True, slots=True)
class Route:
    """A destination prefix and its equally short next hops, by port (more than one: ECMP)."""

    prefix: str
    next_hops: tuple[NextHop, ...]


def routes(fabric: Fabric, switch: Switch) -> list[Route]:
    """Return ``switch``'s IPv4 and IPv6 routes: one per local host, one per other switch that has hosts."""
    found = []
    for host in fabric.hosts.values():
        if host.switch == switch.name:
            hop = (NextHop(host.port, host.mac),)
            found += [Route(f"{host.ipv4}/32", hop), Route(f"{host.ipv6}/128", hop)]
    for other in fabric.switches.values():
        if other.name != switch.name and other.subnet4:
            paths = nx.all_shortest_paths(fabric.graph, switch.name, other.name)
            ports = sorted({fabric.graph[switch.name][path[1]]["ports"][switch.name] for path in paths})
            hops = tuple(NextHop(port, ROUTER_MAC) for port in ports)
            found += [Route(str(other.subnet4), hops), Route(str(other.subnet6), hops)]
    return found
