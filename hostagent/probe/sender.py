"""Sending probes out of the data interface."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from hostagent.interface import DataPort
from hostagent.probe.nexthop import NoNextHopError, resolve
from hostagent.probe.packet import ProbeSpec, build, check
from leveller.errors import UserError


class ProbeSender:
    """Sends probes from ``port``, for flows that start at one of its addresses. Close it when done."""

    def __init__(self, port: DataPort, gateway_mac: bytes | None = None) -> None:
        """Open the packet socket. ``gateway_mac`` is used for every probe instead of asking the kernel.

        Raises UserError where this process may not.
        """
        self._port = port
        self._addresses = frozenset(port.addresses)
        self._gateway_mac = gateway_mac
        try:
            # Protocol 0: it sends only, and the kernel copies no packet to it.
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
        except PermissionError:
            raise UserError(
                "path probes cannot be sent without CAP_NET_RAW",
                "run the agent as root, or give it that capability (AmbientCapabilities= in its unit)",
            ) from None
        self._socket.setblocking(False)
        self._socket.bind((port.name, 0))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def speak_for(self, addresses: Iterable[bytes]) -> None:
        """Send for flows from ``addresses`` from now on, and no others."""
        self._addresses = frozenset(addresses)

    async def send(self, spec: ProbeSpec) -> str:
        """Send one probe; return why it could not be sent, or an empty string."""
        try:
            check(spec)
            if spec.flow.source not in self._addresses:
                return f"{spec.flow}: its source is not an address of {self._port.name}"
            mac = self._gateway_mac or resolve(spec.flow.source, spec.flow.destination, self._port.index)
            self._socket.send(build(spec, self._port.mac, mac))
        except (ValueError, NoNextHopError) as error:
            return str(error)
        except OSError as error:
            return f"{self._port.name}: {error.strerror or error}"
        return ""
