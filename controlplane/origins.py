"""Where a host's packets may enter the fabric, by the routes that lead back to it.

A probe tells the path of the flow whose 5-tuple it bears, and any host can send one in another's name. The
switch says by which port it came in: only where that port leads to the flow's source is it the flow's own.
"""

from __future__ import annotations

from collections.abc import Iterable

from controlplane.int_report import IntReport
from controlplane.reports import HostAddress
from controlplane.switch_config import SwitchSection

_Ports = frozenset[int]


class Origins:
    """The ports behind which each address is, as far as the configured routes tell."""

    def __init__(self, switches: Iterable[SwitchSection]) -> None:
        self._switches = {switch.node_id: _Routes(switch) for switch in switches}

    def refuse(self, report: IntReport) -> str | None:
        """Return why the sunk probe cannot have been sent by the source of its flow; None where it can."""
        first = report.hops[0] if report.hops else None
        routes = self._switches.get(first.node_id) if first and first.node_id is not None else None
        if first is None or routes is None:
            return None  # no path either, for which there are better words
        source = report.flow.source
        ports = routes.ports(source)
        if ports is None or first.ingress_port in ports:
            return None
        return (
            f"a probe of {source} came in by {routes.switch}:{first.ingress_port}, which is not its own port"
        )


class _Routes:
    """One switch's routes, for longest-prefix match."""

    def __init__(self, switch: SwitchSection) -> None:
        self.switch = switch.name
        self._ports: dict[tuple[int, int], dict[int, _Ports]] = {}
        for route in switch.routes:
            prefix = route.prefix
            shift = prefix.max_prefixlen - prefix.prefixlen
            ports = self._ports.setdefault((prefix.version, shift), {})
            ports[int(prefix.network_address) >> shift] = frozenset(hop.port for hop in route.next_hops)
        self._ports = dict(sorted(self._ports.items(), key=lambda item: item[0][1]))

    def ports(self, address: HostAddress) -> _Ports | None:
        """Return the ports that ``address`` is behind: none where no route leads to it; None if unknown.

        A switch without any route of that IP version is routed by somebody else.
        """
        known = False
        for (version, shift), prefixes in self._ports.items():
            if version == address.version:
                known = True
                ports = prefixes.get(int(address) >> shift)
                if ports is not None:
                    return ports
        return frozenset() if known else None
