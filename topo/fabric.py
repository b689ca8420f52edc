"""Fabrics: switches, hosts and links with port numbers, addresses and rates.

A fabric is a networkx graph whose nodes are switch and host names; an edge carries the port number at
either end and its rate. Everything else here (addresses, MACs, gateways) follows from the names' places
in it, so two labs of the same scenario are alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import networkx as nx

from controlplane.model import Link

ROUTER_MAC = "02:00:00:00:00:fe"
"""The gateway's MAC, the same on every edge switch: hosts send everything to it and never ask by ARP."""


@dataclass(frozen=True, slots=True)
class Host:
    """A tenant host: its place (switch and port there) and its addresses on the data network."""

    name: str
    switch: str
    port: int
    ipv4: IPv4Address
    ipv6: IPv6Address
    mac: str

    @property
    def interface(self) -> str:
        """The data interface's name inside the host."""
        return f"{self.name}-eth0"


@dataclass(frozen=True, slots=True)
class Port:
    """A switch port: who is at the other end (``peer_port`` 0 = a host) and its rate in bit/s."""

    number: int
    peer: str
    peer_port: int
    rate: int

    @property
    def host_facing(self) -> bool:
        """Whether a host, which nobody trusts, is at the other end."""
        return self.peer_port == 0


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch; ``number`` (1, 2, ...) is its P4Runtime device id and its INT node id.

    ``subnet4`` and ``subnet6`` hold its hosts' addresses (None for a switch without hosts).
    """

    name: str
    number: int
    ports: dict[int, Port]
    subnet4: IPv4Network | None
    subnet6: IPv6Network | None

    def interface(self, port: int) -> str:
        """Return the Linux interface of ``port``."""
        return f"{self.name}-eth{port}"


@dataclass(frozen=True, slots=True)
class Fabric:
    """A whole fabric; ``graph`` is its topology, for whoever computes paths."""

    graph: nx.Graph[str]
    switches: dict[str, Switch]
    hosts: dict[str, Host]

    def trunks(self) -> list[Link]:
        """Return every switch-to-switch link, one per direction."""
        return [
            Link(switch.name, port.number)
            for switch in self.switches.values()
            for port in switch.ports.values()
            if not port.host_facing
        ]


def pair(host_pairs: int, rate: int, host_rate: int) -> Fabric:
    """Two switches ``s1``, ``s2``, one bottleneck of ``rate`` bit/s between them, and hosts on both sides.

    Hosts ``h1``, ``h3``, ... are at ``s1``, ``h2``, ``h4``, ... at ``s2``, their links of
    ``host_rate`` bit/s. The trunk is port 1 of both.
    """
    graph: nx.Graph[str] = nx.Graph()
    _connect(graph, "s1", "s2", rate)
    for number in range(1, 2 * host_pairs + 1):
        _connect(graph, "s1" if number % 2 else "s2", f"h{number}", host_rate)
    return _number(graph)


def leaf_spine(leaves: int, spines: int, hosts_per_leaf: int, rate: int, host_rate: int) -> Fabric:
    """Every leaf is connected to every spine by ``rate`` bit/s; hosts have links of ``host_rate``.

    Hosts are numbered leaf by leaf. A leaf's ports to the spines come first: they are where jobs meet, and
    bmv2 serves port numbers equal modulo 4 by one thread, so up to four uplinks never share one.
    """
    graph: nx.Graph[str] = nx.Graph()
    for leaf in range(1, leaves + 1):
        for spine in range(1, spines + 1):
            _connect(graph, f"leaf{leaf}", f"spine{spine}", rate)
    for leaf in range(leaves):
        for number in range(leaf * hosts_per_leaf + 1, (leaf + 1) * hosts_per_leaf + 1):
            _connect(graph, f"leaf{leaf + 1}", f"h{number}", host_rate)
    return _number(graph)


def _connect(graph: nx.Graph[str], first: str, second: str, rate: int) -> None:
    """Add a cable; each end takes its node's next free port."""
    ends = {node: graph.degree(node) + 1 if node in graph else 1 for node in (first, second)}
    graph.add_edge(first, second, rate=rate, ports=ends)


def _number(graph: nx.Graph[str]) -> Fabric:
    names = [node for node in graph if not node.startswith("h")]
    switches: dict[str, Switch] = {}
    hosts: dict[str, Host] = {}
    for number, name in enumerate(names, start=1):
        ports: dict[int, Port] = {}
        for peer, edge in graph[name].items():
            port = edge["ports"][name]
            is_host = peer not in names
            ports[port] = Port(port, peer, 0 if is_host else edge["ports"][peer], edge["rate"])
            if is_host:
                place = sum(host.switch == name for host in hosts.values()) + 1
                hosts[peer] = Host(
                    peer,
                    name,
                    port,
                    IPv4Address(f"10.{number}.0.{place}"),
                    IPv6Address(f"fd00:{number}::{place:x}"),
                    f"02:00:00:00:{number:02x}:{place:02x}",
                )
        edge_switch = any(port.host_facing for port in ports.values())
        switches[name] = Switch(
            name,
            number,
            dict(sorted(ports.items())),
            IPv4Network(f"10.{number}.0.0/24") if edge_switch else None,
            IPv6Network(f"fd00:{number}::/64") if edge_switch else None,
        )
    return Fabric(graph, switches, hosts)
