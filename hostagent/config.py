"""``agent.toml``: what the host agent is told."""

from __future__ import annotations

import os
import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

import leveller.config
from hostagent.flows.rdma import COMMAND, SYSFS
from hostagent.logs import FORMATS
from hostagent.logs.custom import custom
from leveller.config import Section
from leveller.errors import UserError
from leveller.tls import TlsSection


def _host(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", text):
        raise ValueError(f"{text!r} is not a name: use 1 to 64 letters, digits and any of _ . -")
    return text


def _controller(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if text.startswith("unix:/"):
        return text
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"{text!r} is not HOST:PORT, such as '10.255.0.1:9559', nor unix:/PATH")
    return text


def _mac(text: str) -> str:
    if not re.fullmatch(r"([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}", text):
        raise ValueError(f"{text!r} is not a MAC address, such as '02:00:00:00:00:01'")
    return text


def _pattern(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError(f"{text!r} is not the name of a file from / on, such as '/data/{{job}}/*.log'")
    return text


class FormatSection(Section):
    """A ``[[agent.formats]]`` table: a log format of the user's own."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")]
    """Its name in reports."""
    pattern: str
    """A regular expression that finds an iteration line, see `hostagent.logs.custom`."""

    @model_validator(mode="after")
    def _check(self) -> FormatSection:
        if self.name in {known.name for known in FORMATS}:
            raise ValueError(f"{self.name} is a format that is known already: choose another name")
        custom(self.name, self.pattern)
        return self


Milliseconds = Annotated[int, Field(ge=5, le=10_000)]


class AgentTlsSection(TlsSection):
    """The ``[agent.tls]`` table."""

    server_name: Annotated[str, AfterValidator(_host)] | None = None
    """The name in the controllers' certificates, where it is not each one's address."""


class AgentSection(Section):
    """The ``[agent]`` table."""

    host: Annotated[str, AfterValidator(_host)]
    """This host's name, unique in the fabric."""
    controllers: Annotated[
        tuple[Annotated[str, AfterValidator(_controller)], ...], Field(min_length=1, max_length=16)
    ]
    """Every controller's address; each gets every report."""
    tls: AgentTlsSection | None = None
    """Mutual TLS with the controllers; None: in plain text."""
    interface: Annotated[str, Field(min_length=1, max_length=15)]
    """The data interface."""
    addresses: tuple[IPv4Address | IPv6Address, ...] = ()
    """Addresses of that interface to speak for; all of them where none are given."""
    gateway_mac: Annotated[str, AfterValidator(_mac)] | None = None
    """Where probes are sent; the kernel's routes and neighbours decide where it is not given."""
    container_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    """Networks of containers with addresses of their own that the fabric routes; those of the interface are
    known."""
    network_namespace: Literal["auto", "own", "any"] = "auto"
    """Whose processes count: those in the agent's own network namespace, or all. ``auto``: all where that is
    the host's (the one of process 1), else its own."""
    proc: Path = Path("/proc")
    """Where the proc file system of the jobs' PID namespace is mounted."""
    logs: tuple[Annotated[str, AfterValidator(_pattern)], ...] = ()
    """Names of logs, with * ? [..] and {job}: files that a job's processes have open, or named by the job."""
    formats: tuple[FormatSection, ...] = ()
    """Log formats of the user's own, tried before the known ones."""
    report_socket: Annotated[str, Field(max_length=107)] = ""
    """Where training code tells of its progress (hostagent.report): a path; where it is not given,
    ``report.sock`` in the runtime directory of the systemd unit, or the abstract socket."""
    hung_after: Annotated[float, Field(ge=2)] = 20.0
    """A job hangs that shows no iteration for so many times the longest recent time between two lines .."""
    hung_min_s: Annotated[float, Field(ge=1)] = 60.0
    """.. and for so long at least."""
    nccl_socket: Path | None = None
    """Where jobs that load our NCCL plugin tell of themselves; where it is not given, ``nccl.sock`` in the
    runtime directory of the systemd unit, or nowhere."""
    state_file: Path | None = None
    """Where what is known of jobs is kept over a restart of the agent; where it is not given, ``agent.json``
    in the state directory of the systemd unit, or nowhere."""
    rdma_command: Annotated[tuple[str, ...], Field(min_length=1)] = COMMAND
    """What prints the RDMA queue pairs as ``rdma -j resource show qp`` does."""
    rdma_devices: Path = SYSFS
    """Where the RDMA devices are; where there are none, ``rdma_command`` is not run."""
    poll_ms: Milliseconds = 20
    """Shortest time between two looks at logs that grow all the time; others are read when they grow."""
    flows_ms: Milliseconds = 150
    """How often connections are looked at; less often where that would take more than 1 % of a core."""
    scan_ms: Milliseconds = 500
    """How often new processes are looked for; less often where that would take more than 1 % of a core."""
    report_ms: Milliseconds = 100
    """Longest time between two reports; iterations and opened or closed flows are reported at once."""


class AgentConfig(Section):
    """The whole file."""

    agent: AgentSection


def in_unit(agent: AgentSection) -> AgentSection:
    """Return ``agent`` with the files that it does not name in the directories of its systemd unit."""
    files: dict[str, object] = {}
    for field, kind, name in (
        ("nccl_socket", "RUNTIME", "nccl.sock"),
        ("report_socket", "RUNTIME", "report.sock"),
        ("state_file", "STATE", "agent.json"),
    ):
        directory = os.environ.get(f"{kind}_DIRECTORY", "").partition(":")[0]
        if directory and not getattr(agent, field):
            path = Path(directory) / name
            files[field] = str(path) if field == "report_socket" else path
    return agent.model_copy(update=files)


def load(path: Path) -> AgentSection:
    """Read ``path``. Raises UserError naming the file, the field and the mend."""
    agent = leveller.config.load(path, AgentConfig).agent
    if agent.tls is not None:
        try:
            _check_certificate(agent, agent.tls)
        except UserError as error:
            raise UserError(f"{path}: {error.what}", error.mend) from None
    return agent


def _check_certificate(agent: AgentSection, tls: AgentTlsSection) -> None:
    """Raise UserError where the controllers would refuse the agent, or a part of what it is to say."""
    names = tls.check("agent.tls", "client")
    if names.host(agent.host) is None:
        raise UserError(
            f"agent.tls.cert: {tls.cert} is for {names}, not for agent.host = {agent.host}",
            "give this host its own, with its name as DNS subject alternative name",
        )
    if outside := ", ".join(sorted(map(str, set(agent.addresses) - names.addresses))):
        raise UserError(
            f"agent.tls.cert: {tls.cert} does not have {outside} of agent.addresses",
            "have it signed with each address as IP subject alternative name",
        )
