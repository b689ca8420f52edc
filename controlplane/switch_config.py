"""``[[switches]]`` of ``leveller.toml``: one switch, its ports, and where its routes and cables lead."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from controlplane.fields import (
    MAX_LEVELS,
    GrpcAddress,
    Interface,
    Mac,
    Name,
    Network,
    Port,
    PortKey,
    known,
    unique,
)
from controlplane.ports import MAX_OPENFLOW_PORT, MAX_P4_PORT
from controlplane.southbound.target import Target, Tls
from leveller.config import Section


class NextHop(Section):
    """Where a route leads: an egress port and the MAC address at its other end."""

    port: Port
    mac: Mac


class RouteSection(Section):
    """``[[switches.routes]]``: several next hops are equal-cost."""

    prefix: Network
    next_hops: tuple[NextHop, ...] = Field(min_length=1, max_length=64)


class CableSection(Section):
    """``[[switches.cables]]``: what is at the other end of a port of an OpenFlow switch."""

    port: Port
    peer: Name
    peer_port: Port


class SwitchSection(Section):
    """``[[switches]]``: one P4Runtime device, or OpenFlow switch, and its reference forwarding."""

    name: Name
    protocol: Annotated[str, AfterValidator(partial(known, among=("p4runtime", "openflow")))] = "p4runtime"
    address: GrpcAddress = ""
    """Of its P4Runtime server: ``HOST:PORT`` or ``unix:/PATH``. An OpenFlow switch connects by itself."""
    device_id: int = Field(ge=1, lt=2**64)
    """P4Runtime's, or OpenFlow's datapath id."""
    node_id: int = Field(ge=1, lt=2**32 - 1)
    """INT node id; all ones would mean that a hop cannot tell."""
    ports: tuple[Port, ...] = Field(min_length=1)
    host_ports: tuple[Port, ...] = ()
    """The ports that lead to hosts: INT starts and ends there."""
    queues: int = Field(default=8, ge=1, le=MAX_LEVELS)
    """Strict-priority queues that each port has."""
    ecmp_seed: int = Field(default=0, ge=0, lt=2**32)
    role: Name | None = None
    """P4Runtime role, beside another controller that has the default one and pushes the pipeline."""
    ca: Path | None = None
    """PEM file of the CA that the switch's certificate is from; with it the channel is TLS."""
    cert: Path | None = None
    """PEM file of the controller's own certificate, where the switch asks for one (mTLS) ..."""
    key: Path | None = None
    """... and of its key."""
    server_name: Name | None = None
    """The name in the switch's certificate, where it is not the address's."""
    interfaces: Mapping[PortKey, Interface] = {}
    """The kernel's interface of each port, where its queues are this machine's: for ``check`` alone."""
    routes: tuple[RouteSection, ...] = ()
    cables: tuple[CableSection, ...] = ()
    """Of an OpenFlow switch: where its ports to other switches lead."""

    def target(self) -> Target:
        """Return it as the southbound's. Raises UserError for PEM files that cannot be used."""
        tls = None
        if self.ca is not None:
            tls = Tls(self.ca, self.cert, self.key, self.server_name)
            tls.check()
        return Target(self.name, self.address, self.device_id, self.role, tls)

    @model_validator(mode="after")
    def _protocol_fits(self) -> Self:
        if self.protocol == "p4runtime":
            if not self.address:
                raise ValueError("address is missing; give that of its P4Runtime server, HOST:PORT")
            if not self.address.startswith("unix:") and int(self.address.rpartition(":")[2]) == 0:
                raise ValueError(f"address {self.address} has port 0; give the one that it listens on")
            if self.cables:
                raise ValueError("cables are for switches with protocol = 'openflow'; remove them")
            return self
        for name in ("address", "role", "ca"):
            if getattr(self, name):
                raise ValueError(f"{name} is for P4Runtime; remove it, or protocol = 'openflow'")
        cabled = [cable.port for cable in self.cables]
        unique("cables.port", cabled)
        for port in cabled:
            if port not in self.ports:
                raise ValueError(f"cables has port {port}, which is not among ports; add it there")
            if port in self.host_ports:
                raise ValueError(f"port {port} has a cable to a switch, and is among host_ports; remove one")
        for port in self.ports:
            if port not in self.host_ports and port not in cabled:
                raise ValueError(
                    f"port {port} leads to no host, and no cable tells where else; give [[switches.cables]]"
                )
        return self

    @model_validator(mode="after")
    def _certificates_go_together(self) -> Self:
        if (self.cert is None) != (self.key is None):
            raise ValueError("cert and key go together; give both or none")
        for name in ("cert", "server_name"):
            if getattr(self, name) is not None and self.ca is None:
                raise ValueError(f"{name} is for TLS, which wants a ca; give the file of the switch's CA")
        return self

    @model_validator(mode="after")
    def _ports_exist(self) -> Self:
        unique("ports", self.ports)
        unique("host_ports", self.host_ports)
        lowest, highest = (1, MAX_OPENFLOW_PORT) if self.protocol == "openflow" else (0, MAX_P4_PORT)
        for port in self.ports:
            if not lowest <= port <= highest:
                raise ValueError(f"ports has {port}; {self.protocol} has ports {lowest} to {highest}")
        for field, ports in (("host_ports", self.host_ports), ("interfaces", self.interfaces)):
            for port in ports:
                if port not in self.ports:
                    raise ValueError(f"{field} has {port}, which is not among ports; add it there")
        unique("interfaces", self.interfaces.values())
        unique("routes.prefix", [str(route.prefix) for route in self.routes])
        for route in self.routes:
            unique(f"next_hops of {route.prefix}", [(hop.port, hop.mac) for hop in route.next_hops])
            for hop in route.next_hops:
                if hop.port not in self.ports:
                    raise ValueError(
                        f"the route to {route.prefix} uses port {hop.port}, which is not among ports"
                    )
        return self
