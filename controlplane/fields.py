"""Kinds of values in ``leveller.toml``, each with the one line that says what is wrong with one. Pure."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from controlplane.ports import MAX_OPENFLOW_PORT
from leveller.config import LONGEST_VALUE

MAX_LEVELS = 8
"""A switch port has at most eight queues, and two levels never share one."""


def _address(text: str) -> str:
    """Check ``HOST:PORT`` (an IPv6 host in brackets)."""
    host, colon, port = text.rpartition(":")
    bare = ":" in host and not (host.startswith("[") and host.endswith("]"))
    number = re.fullmatch("[0-9]{1,5}", port)
    if bare or re.search(r"\s", text) or not (colon and host and number and int(port) <= 65535):
        shown = text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."
        raise ValueError(f"{shown!r} is not HOST:PORT, such as '127.0.0.1:9559'")
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
    if int(text[:2], 16) & 1:
        raise ValueError(f"{text!r} is a group's address; give that of one interface: its first byte is even")
    return text.lower()


def known(text: str, among: Iterable[str]) -> str:
    """Return ``text``. Raises ValueError where it is not ``among`` what is known."""
    if text not in among:
        raise ValueError(f"{text!r} is not known; give one of: {', '.join(among)}")
    return text


def _network(value: object) -> object:
    """Read text here, since pydantic would name both kinds of network in what it says of it."""
    if isinstance(value, IPv4Network | IPv6Network):
        return value
    if not isinstance(value, str) or "%" in value:  # a number would be an address, and a zone is this host's
        raise ValueError(f"{value!r} is not a network, such as '10.0.2.0/24'")
    try:
        return ip_network(value)
    except ValueError as error:
        raise ValueError(f"{error}; give a network, such as '10.0.2.0/24'") from None


def unique(field: str, values: Iterable[Hashable]) -> None:
    """Raise ValueError where ``values``, those of ``field``, have one twice."""
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
_PORTS = Field(ge=0, le=MAX_OPENFLOW_PORT)
Port = Annotated[int, Field(strict=True), _PORTS]
"""Which of them a switch has depends on what it runs: see `controlplane.ports`."""
PortKey = Annotated[int, _PORTS]
"""The same as a key, which TOML has as text."""
Interface = Annotated[str, Field(min_length=1, max_length=15)]
JobId = Annotated[str, Field(min_length=1, max_length=256)]
Network = Annotated[IPv4Network | IPv6Network, BeforeValidator(_network)]
