"""``leveller.toml``: what the controller is told, checked as a whole before anything starts.

`load` is the way in: every mistake is one line that names the file, the field and the mend.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

import leveller.config
import p4src
from controlplane.fields import (
    MAX_LEVELS,
    Address,
    Dscp,
    GrpcAddress,
    JobId,
    Microseconds,
    Name,
    Queue,
    Seconds,
    known,
    unique,
)
from controlplane.model import Link
from controlplane.policies import POLICIES, Scope
from controlplane.ports import reserved
from controlplane.southbound.target import OpenFlowTarget, Target
from controlplane.switch_config import SwitchSection
from leveller.config import Section
from leveller.errors import UserError
from leveller.tls import TlsSection


def _slack(value: object) -> object:
    if value != "measured" and (not isinstance(value, int) or value < 0):
        raise ValueError(f'{value!r} is neither microseconds, such as 0, nor "measured"')
    return value


def _scope(value: object) -> object:
    return known(value, tuple(Scope)) if isinstance(value, str) else value


LEAST_GAP_US = 20_000
"""A pause of so long ends a burst for agents (`hostagent.timing_bursts`). Where slack is measured, switches
must see no more bursts than they do, for each may wait for its share of it."""


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
    tls: TlsSection | None = None
    """Agents connect by mutual TLS, and speak only for the host and the addresses in their certificates;
    None: in plain text, and who they say they are is believed."""
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

    name: Annotated[str, AfterValidator(partial(known, among=tuple(POLICIES)))] = "leveller"
    scope: Annotated[Scope, BeforeValidator(_scope)] = Scope.FABRIC
    profile: bool = True
    """Measure T_ideal under the profiling level; else it is each job's fastest iteration so far."""
    order: tuple[JobId, ...] = ()
    """``static`` only: these jobs first, in this order, before all others."""

    @field_validator("order")
    @classmethod
    def _once(cls, order: tuple[str, ...]) -> tuple[str, ...]:
        unique("order", order)
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
    min_s: float = Field(default=0.5, ge=0, le=1e6, allow_inf_nan=False)
    """For so long at least, so that switches' counters can be read meanwhile."""
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


class CountersSection(Section):
    """``[counters]``: what jobs say of their progress, held against what the switches counted."""

    check: bool = True
    interval_s: Seconds = 5.0
    """The switches' flow counters are read so often, or less where that takes more than a twentieth of it."""
    tolerance: float = Field(default=0.25, gt=0, lt=1, allow_inf_nan=False)
    """The part of its iterations that a job may leave untold, by its bytes, before it is flagged."""
    min_iterations: int = Field(default=20, ge=5)
    """It is judged over so many iterations by its bytes."""
    enforce: bool = True
    """What a job left untold counts for R; else it is only shown."""


class LevelsSection(Section):
    """``[levels]``: how levels become queues, marks and times in the data plane."""

    count: int = Field(default=7, ge=1, le=MAX_LEVELS)
    """K. Level 0 is the lowest."""
    queues: tuple[Queue, ...] = (0, 1, 2, 3, 4, 5, 6)
    """The queue of each level, lowest level first; where it is not given, the ``count`` lowest queues."""
    dscp: tuple[Dscp, ...] = ()
    """The DSCP that each level is marked with for what comes after a switch; empty = leave the DSCP alone."""
    control_queue: Queue = 7
    """The queue of ARP, routing, CNP, probes, and pure ACKs of flows that are not known."""
    default: int = Field(default=0, ge=0)
    """The level of traffic that no flow entry knows."""
    guard_us: Microseconds = 0
    """Reorder guard of TCP flows; 0 = off."""
    guard_roce_us: Microseconds = 500
    """Reorder guard of RoCEv2 flows; 0 = off."""
    slack_us: Annotated[Microseconds | Literal["measured"], BeforeValidator(_slack)] = 0
    """For so long from its first packet a burst waits at level 0, for its job does not need it yet; 0 = off.
    ``measured``: each job's own, as far as its agent is sure of it (`controlplane.measured`)."""
    burst_gap_us: Microseconds = 1000
    """A flow that was silent for so long begins a burst; 0 = bursts are not told apart."""

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
        unique("queues", self.queues)
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
        unique("dscp", self.dscp)
        if self.slack_us == "measured" and self.burst_gap_us < LEAST_GAP_US:
            raise ValueError(
                f'slack_us = "measured" needs burst_gap_us of {LEAST_GAP_US} or more, as agents tell bursts'
                f" apart; it is {self.burst_gap_us}"
            )
        if self.slack_us and not self.burst_gap_us:
            raise ValueError(
                f"slack_us = {self.slack_us} is for the start of bursts, and burst_gap_us = 0 tells of none;"
                " give the silence before one"
            )
        if self.default >= self.count:
            raise ValueError(f"default = {self.default} is no level; give 0 to {self.count - 1}")
        return self


class OpenFlowSection(Section):
    """``[openflow]``: where OpenFlow switches connect."""

    listen: Address = "127.0.0.1:6653"


class JobSection(Section):
    """``[[jobs]]``: what is known of a job beforehand; a job that is not listed is ranked all the same."""

    id: JobId
    intensity: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """For ``static`` and ``crux`` where ``policy.order`` is empty; higher goes first. Where it is not given
    it is measured: computing seconds of all ranks for each second of communication."""
    t_ideal_s: Seconds | None = None
    """Iteration time alone at full bandwidth; a job that has it is not profiled."""


class Config(Section):
    """The whole file."""

    controller: ControllerSection = ControllerSection()
    policy: PolicySection = PolicySection()
    profiling: ProfilingSection = ProfilingSection()
    counters: CountersSection = CountersSection()
    levels: LevelsSection = LevelsSection()
    openflow: OpenFlowSection = OpenFlowSection()
    switches: tuple[SwitchSection, ...] = Field(min_length=1)
    jobs: tuple[JobSection, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for field in ("name", "address", "node_id"):
            values = [getattr(switch, field) for switch in self.switches]
            unique(f"switches.{field}", [value for value in values if value])
        # P4Runtime's device ids are each server's own: every Stratum may be 1.
        openflow = [switch.device_id for switch in self.switches if switch.protocol == "openflow"]
        unique("switches.device_id", openflow)
        servers = (self.controller.listen, self.controller.http)
        if self.openflow.listen in servers and not self.openflow.listen.endswith(":0"):
            raise ValueError(
                f"openflow.listen and the controller's are both {self.openflow.listen}; give another"
            )
        self._cables_lead_somewhere()
        unique("jobs.id", [job.id for job in self.jobs])
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
                if cable.peer_port in peer.host_ports:
                    raise ValueError(
                        f"the cable of {switch.name} leads to {cable.peer}:{cable.peer_port}, which is among"
                        f" host_ports of {cable.peer}; remove it there"
                    )
        ends = [f"{cable.peer}:{cable.peer_port}" for switch in self.switches for cable in switch.cables]
        unique("switches.cables.peer_port", ends)

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
    if config.controller.tls is not None:
        try:
            config.controller.tls.check("controller.tls", "server")
        except UserError as error:
            raise UserError(f"{path}: {error.what}", error.mend) from None
    int_dscp = program.constants["INT_DSCP"]
    if int_dscp in config.levels.dscp:
        raise UserError(
            f"{path}: levels.dscp has {int_dscp} for level {config.levels.dscp.index(int_dscp)}",
            "that DSCP marks INT probes in the P4 program; give the level another",
        )
    nowhere = reserved(program)
    for switch in config.switches:
        for port in switch.ports:
            if switch.protocol == "p4runtime" and port in nowhere:
                raise UserError(
                    f"{path}: switch {switch.name}: port {port} {nowhere[port]}",
                    "give ports that have a cable",
                )
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
