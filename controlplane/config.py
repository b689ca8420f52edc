"""``leveller.toml``: what the controller is told, checked as a whole before anything starts.

`load` is the way in: every mistake is one line that names the file, the field and the mend.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Mapping
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

import leveller.config
import p4src
from controlplane.model import Link
from controlplane.policies import POLICIES, Scope
from controlplane.southbound.target import OpenFlowTarget, Target, Tls
from leveller.config import Section
from leveller.errors import UserError

MAX_LEVELS = 8
"""A switch port has at most eight queues, and two levels never share one."""


def _address(text: str) -> str:
    """Check ``HOST:PORT`` (an IPv6 host in brackets)."""
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) <= 65535):
        raise ValueError(f"{text!r} is not HOST:PORT, such as '127.0.0.1:9559'")
    return text


def _grpc_address(text: str) -> str:
    """Check ``HOST:PORT`` or ``unix:/PATH``."""
    return text if text.startswith("unix:/") else _address(text)


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", text):
        raise ValueError(f"{text!r} is not a name: use 1 to 64 letters, digits and any of _ . -")
    return text


def _mac(text: str) -> str:
    if not re.fullmatch(r"([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}", text):
        raise ValueError(f"{text!r} is not a MAC address, such as '02:00:00:00:00:01'")
    return text.lower()


def _known(text: str, known: Iterable[str]) -> str:
    if text not in known:
        raise ValueError(f"{text!r} is not known; give one of: {', '.join(known)}")
    return text


def _scope(value: object) -> object:
    return _known(value, tuple(Scope)) if isinstance(value, str) else value


def _network(value: object) -> object:
    """Read text here, since pydantic would name both kinds of network in what it says of it."""
    if not isinstance(value, str):
        return value
    try:
        return ip_network(value)
    except ValueError as error:
        raise ValueError(f"{error}; give a network, such as '10.0.2.0/24'") from None


def _unique(field: str, values: Iterable[Hashable]) -> None:
    seen: set[Hashable] = set()
    for value in values:
        if value in seen:
            raise ValueError(f"{field} has {value} twice; every one must be different")
        seen.add(value)


Address = Annotated[str, AfterValidator(_address)]
GrpcAddress = Annotated[str, AfterValidator(_grpc_address)]
Name = Annotated[str, AfterValidator(_name)]
Mac = Annotated[str, AfterValidator(_mac)]
Seconds = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
Microseconds = Annotated[int, Field(ge=0, lt=2**32)]
Queue = Annotated[int, Field(ge=0, lt=MAX_LEVELS)]
Dscp = Annotated[int, Field(ge=0, lt=64)]
Port = Annotated[int, Field(ge=1, lt=510)]
"""A v1model port has 9 bits; 510 is the controller's and 511 means drop."""
JobId = Annotated[str, Field(min_length=1, max_length=256)]


class ControllerSection(Section):
    """``[controller]``: its name, its two servers, its store and its times."""

    name: Name = "leveller"
    listen: GrpcAddress = "127.0.0.1:9559"
    """Where host agents connect (gRPC): ``HOST:PORT`` or ``unix:/PATH``."""
    http: Address = "127.0.0.1:9560"
    """Where GET /metrics and GET /status are served."""
    store: Path = Path("leveller.db")
    """SQLite file; relative to the directory that the controller is started in."""
    tau_s: Seconds = 0.25
    """The longest time between two rankings."""
    min_interval_s: Seconds = 0.05
    """The shortest time between two rankings, whatever happens meanwhile."""
    min_flow_bytes: int = Field(default=65536, ge=0)
    """A flow is ranked once it has sent that many bytes; its path is probed at once."""
    probe_retry_s: Seconds = 0.25
    probe_refresh_s: Seconds = 30.0
    silent_after_s: Seconds = 3.0
    """A host that reports nothing for so long is silent: R of a job whose hosts all are stands still."""
    forget_after_s: Seconds = 60.0
    """What a silent host reported is forgotten after so long, and numbers of things gone are free again."""
    election_id: int = Field(default=1, ge=1, lt=2**64)
    program: Path | None = None
    """JSON of a pipeline of one's own (docs/library.md), its P4Info beside it; None: the reference's."""

    @model_validator(mode="after")
    def _times(self) -> Self:
        if self.min_interval_s > self.tau_s:
            raise ValueError(
                f"min_interval_s = {self.min_interval_s} is above tau_s = {self.tau_s}; lower it"
            )
        if self.silent_after_s >= self.forget_after_s:
            raise ValueError(
                f"silent_after_s = {self.silent_after_s} is not below forget_after_s ="
                f" {self.forget_after_s}; lower it"
            )
        if self.listen == self.http and not self.listen.endswith(":0"):
            raise ValueError(f"listen and http are both {self.http}; give them different ports")
        return self


class PolicySection(Section):
    """``[policy]``: who goes first."""

    name: Annotated[str, AfterValidator(partial(_known, known=tuple(POLICIES)))] = "leveller"
    scope: Annotated[Scope, BeforeValidator(_scope)] = Scope.FABRIC
    profile: bool = True
    """Measure T_ideal under the profiling level; else it is each job's fastest iteration so far."""
    order: tuple[JobId, ...] = ()
    """``static`` only: these jobs first, in this order, before all others."""

    @field_validator("order")
    @classmethod
    def _once(cls, order: tuple[str, ...]) -> tuple[str, ...]:
        _unique("order", order)
        return order


class ProfilingSection(Section):
    """``[profiling]``: when T_ideal counts as measured, and how often it is measured again."""

    window: int = Field(default=3, ge=2, le=100)
    """So many of the last ``2 window - 1`` iterations must agree."""
    tolerance: float = Field(default=0.05, gt=0, lt=1, allow_inf_nan=False)
    """They agree when the slowest is at most this fraction above the fastest."""
    max_iterations: int = Field(default=10, ge=2)
    max_s: Seconds = 120.0
    """After so many iterations, or so long, the fastest one seen is taken."""
    interval_s: Seconds = 1800.0
    """Mean time between two profilings of a job; each is drawn evenly from half to one and a half of it."""
    seed: int = 0

    @model_validator(mode="after")
    def _window_fits(self) -> Self:
        if self.max_iterations < self.window:
            raise ValueError(
                f"max_iterations = {self.max_iterations} is below window = {self.window}; raise it"
            )
        return self


class LevelsSection(Section):
    """``[levels]``: how levels become queues, marks and times in the data plane."""

    count: int = Field(default=7, ge=1, le=MAX_LEVELS)
    """K. Level 0 is the lowest."""
    queues: tuple[Queue, ...] = (0, 1, 2, 3, 4, 5, 6)
    """The queue of each level, lowest level first; where it is not given, the ``count`` lowest queues."""
    dscp: tuple[Dscp, ...] = ()
    """The DSCP that each level is marked with for what comes after a switch; empty = leave the DSCP alone."""
    control_queue: Queue = 7
    """The queue of ARP, routing, CNP, pure ACKs and probes."""
    default: int = Field(default=0, ge=0)
    """The level of traffic that no flow entry knows."""
    guard_us: Microseconds = 0
    """Reorder guard of TCP flows; 0 = off."""
    guard_roce_us: Microseconds = 500
    """Reorder guard of RoCEv2 flows; 0 = off."""
    slack_us: Microseconds = 0
    burst_gap_us: Microseconds = 1000

    @property
    def control_level(self) -> int:
        """The level number of control traffic: one above the K that are ranked."""
        return self.count

    @model_validator(mode="before")
    @classmethod
    def _lowest_queues(cls, data: object) -> object:
        if isinstance(data, dict) and "queues" not in data and isinstance(data.get("count"), int):
            return {**data, "queues": tuple(range(data["count"]))}
        return data

    @model_validator(mode="after")
    def _queues_fit(self) -> Self:
        if len(self.queues) != self.count:
            raise ValueError(
                f"queues has {len(self.queues)} entries for count = {self.count} levels; give one per level"
            )
        _unique("queues", self.queues)
        if list(self.queues) != sorted(self.queues):
            raise ValueError(f"queues = {list(self.queues)} must rise with the level: queue 0 is served last")
        if self.control_queue in self.queues:
            raise ValueError(
                f"control_queue = {self.control_queue} is also the queue of level"
                f" {self.queues.index(self.control_queue)}; give control traffic its own"
            )
        if self.dscp and len(self.dscp) != self.count:
            raise ValueError(
                f"dscp has {len(self.dscp)} entries for count = {self.count} levels; give one per level"
            )
        _unique("dscp", self.dscp)
        if self.default >= self.count:
            raise ValueError(f"default = {self.default} is no level; give 0 to {self.count - 1}")
        return self


class NextHop(Section):
    """Where a route leads: an egress port and the MAC address at its other end."""

    port: Port
    mac: Mac


class RouteSection(Section):
    """``[[switches.routes]]``: several next hops are equal-cost."""

    prefix: Annotated[IPv4Network | IPv6Network, BeforeValidator(_network)]
    next_hops: tuple[NextHop, ...] = Field(min_length=1, max_length=64)


class CableSection(Section):
    """``[[switches.cables]]``: what is at the other end of a port of an OpenFlow switch."""

    port: Port
    peer: Name
    peer_port: Port


class OpenFlowSection(Section):
    """``[openflow]``: where OpenFlow switches connect."""

    listen: Address = "127.0.0.1:6653"


class SwitchSection(Section):
    """``[[switches]]``: one P4Runtime device, or OpenFlow switch, and its reference forwarding."""

    name: Name
    protocol: Annotated[str, AfterValidator(partial(_known, known=("p4runtime", "openflow")))] = "p4runtime"
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
    interfaces: Mapping[Port, str] = {}
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
            if self.cables:
                raise ValueError("cables are for switches with protocol = 'openflow'; remove them")
            return self
        for name in ("address", "role", "ca"):
            if getattr(self, name):
                raise ValueError(f"{name} is for P4Runtime; remove it, or protocol = 'openflow'")
        cabled = {cable.port for cable in self.cables}
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
        _unique("ports", self.ports)
        _unique("host_ports", self.host_ports)
        for port in self.host_ports:
            if port not in self.ports:
                raise ValueError(f"host_ports has {port}, which is not among ports; add it there")
        _unique("routes.prefix", [str(route.prefix) for route in self.routes])
        for route in self.routes:
            _unique(f"next_hops of {route.prefix}", [(hop.port, hop.mac) for hop in route.next_hops])
            for hop in route.next_hops:
                if hop.port not in self.ports:
                    raise ValueError(
                        f"the route to {route.prefix} uses port {hop.port}, which is not among ports"
                    )
        return self


class JobSection(Section):
    """``[[jobs]]``: what is known of a job beforehand; a job that is not listed is ranked all the same."""

    id: JobId
    intensity: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """For ``static`` where ``policy.order`` is empty; higher goes first."""
    t_ideal_s: Seconds | None = None
    """Iteration time alone at full bandwidth; a job that has it is not profiled."""


class Config(Section):
    """The whole file."""

    controller: ControllerSection = ControllerSection()
    policy: PolicySection = PolicySection()
    profiling: ProfilingSection = ProfilingSection()
    levels: LevelsSection = LevelsSection()
    openflow: OpenFlowSection = OpenFlowSection()
    switches: tuple[SwitchSection, ...] = Field(min_length=1)
    jobs: tuple[JobSection, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for field in ("name", "address", "node_id"):
            values = [getattr(switch, field) for switch in self.switches]
            _unique(f"switches.{field}", [value for value in values if value])
        # P4Runtime's device ids are each server's own: every Stratum may be 1.
        openflow = [switch.device_id for switch in self.switches if switch.protocol == "openflow"]
        _unique("switches.device_id", openflow)
        self._cables_lead_somewhere()
        _unique("jobs.id", [job.id for job in self.jobs])
        highest = max(*self.levels.queues, self.levels.control_queue)
        for switch in self.switches:
            if highest >= switch.queues:
                raise ValueError(
                    f"levels use queue {highest}, but switch {switch.name} has queues 0 to"
                    f" {switch.queues - 1}; lower levels.count, levels.queues or levels.control_queue"
                )
        if self.policy.order and any(job.intensity for job in self.jobs):
            raise ValueError("policy.order and jobs.intensity both order the jobs; give one of them")
        if self.policy.order and self.policy.name != "static":
            raise ValueError(f"policy.order is for static, but policy.name is {self.policy.name}; remove it")
        return self

    def _cables_lead_somewhere(self) -> None:
        ports = {switch.name: switch for switch in self.switches}
        for switch in self.switches:
            for cable in switch.cables:
                peer = ports.get(cable.peer)
                if peer is None or cable.peer_port not in peer.ports or peer.protocol == "openflow":
                    raise ValueError(
                        f"the cable of {switch.name} to {cable.peer}:{cable.peer_port} leads to no port of a"
                        " P4 switch; name one of switches.ports"
                    )

    def behind(self) -> dict[Link, Link]:
        """Return (switch, ingress port) -> OpenFlow switch's port that leads there; see `paths.path_of`."""
        return {
            Link(cable.peer, cable.peer_port): Link(switch.name, cable.port)
            for switch in self.switches
            for cable in switch.cables
        }

    def targets(self) -> list[Target | OpenFlowTarget]:
        """Return the switches as the southbound's. Raises UserError for PEM files that cannot be used."""
        return [
            switch.target()
            if switch.protocol == "p4runtime"
            else OpenFlowTarget(switch.name, switch.device_id, switch.node_id, self.openflow.listen)
            for switch in self.switches
        ]

    def program(self) -> p4src.Program:
        """Return the program that the switches run. Raises UserError where it is not there."""
        own = self.controller.program
        return p4src.program("v1model") if own is None else p4src.compiled(own)

    def intensity(self, job: str) -> float:
        """Return a job's intensity for ``static``: from ``policy.order``, or what ``[[jobs]]`` says."""
        if self.policy.order:
            order = self.policy.order
            return float(len(order) - order.index(job)) if job in order else 0.0
        return next((section.intensity for section in self.jobs if section.id == job), 0.0)

    def t_ideal_ns(self, job: str) -> int | None:
        """Return the configured T_ideal of a job in nanoseconds, if there is one."""
        for section in self.jobs:
            if section.id == job and section.t_ideal_s is not None:
                return round(section.t_ideal_s * 1e9)
        return None


def load(path: Path) -> Config:
    """Read and check the configuration file ``path``. Raises UserError (see `leveller.config.load`)."""
    config = leveller.config.load(path, Config)
    try:
        program = config.program()
    except UserError as error:
        raise UserError(f"{path}: controller.program: {error.what}", error.mend) from None
    _see_that_it_is_json(path, program.json)
    int_dscp = program.constants["INT_DSCP"]
    if int_dscp in config.levels.dscp:
        raise UserError(
            f"{path}: levels.dscp has {int_dscp} for level {config.levels.dscp.index(int_dscp)}",
            "that DSCP marks INT probes in the P4 program; give the level another",
        )
    for switch in config.switches:
        if switch.routes and not program.has_table("ipv4_lpm"):
            raise UserError(
                f"{path}: switch {switch.name} has routes, but {program.p4info.name} has no table 'ipv4_lpm'",
                "remove them: that pipeline forwards in its own way",
            )
        try:
            switch.target()
        except UserError as error:
            raise UserError(f"{path}: switch {switch.name}: {error.what}", error.mend) from None
    return config


def _see_that_it_is_json(path: Path, program: Path) -> None:
    """Raise UserError for JSON that is none: bmv2, once given such a program, takes no other any more."""
    if program.suffix != ".json":  # Tofino's, of which the switch alone knows
        return
    try:
        json.loads(program.read_bytes())
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path}: controller.program: {program} is no JSON ({error})", "compile it again"
        ) from None
