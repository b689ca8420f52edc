"""``agent.toml``: what the host agent is told."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

import leveller.config
from leveller.config import Section


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


Milliseconds = Annotated[int, Field(ge=5, le=10_000)]


class AgentSection(Section):
    """The ``[agent]`` table."""

    host: Annotated[str, AfterValidator(_host)]
    """This host's name, unique in the fabric."""
    controllers: Annotated[
        tuple[Annotated[str, AfterValidator(_controller)], ...], Field(min_length=1, max_length=16)
    ]
    """Every controller's address; each gets every report."""
    interface: Annotated[str, Field(min_length=1, max_length=15)]
    """The data interface."""
    addresses: tuple[IPv4Address | IPv6Address, ...] = ()
    """Addresses of that interface to speak for; all of them where none are given."""
    gateway_mac: Annotated[str, AfterValidator(_mac)] | None = None
    """Where probes are sent; the kernel's routes and neighbours decide where it is not given."""
    network_namespace: Literal["own", "any"] = "own"
    """Whose processes count: those in the agent's own network namespace, or all."""
    proc: Path = Path("/proc")
    """Where the proc file system of the jobs' PID namespace is mounted."""
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


def load(path: Path) -> AgentSection:
    """Read ``path``. Raises UserError naming the file, the field and the mend."""
    return leveller.config.load(path, AgentConfig).agent
