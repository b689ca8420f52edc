"""What a finder of flows yields."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import NamedTuple

TCP = 6
UDP = 17


class FiveTuple(NamedTuple):
    """One direction of a flow; addresses are 4 or 16 bytes in network order."""

    source: bytes
    destination: bytes
    protocol: int
    source_port: int
    destination_port: int
    destination_qp: int = 0

    def __str__(self) -> str:
        source, destination = ip_address(self.source), ip_address(self.destination)
        protocol = {TCP: "tcp", UDP: "udp"}.get(self.protocol, str(self.protocol))
        text = f"{protocol} {source}:{self.source_port} > {destination}:{self.destination_port}"
        return f"{text} qp {self.destination_qp}" if self.destination_qp else text


class Connection(NamedTuple):
    """A connection of this host, in the direction away from it."""

    tuple: FiveTuple
    cookie: int
    """The kernel's number for the socket, never used twice; tells a 5-tuple's next use from the last."""
    inode: int
    """As in ``/proc/PID/fd``; 0 where no process has it (not accepted yet, or closed and still sending)."""
    bytes_sent: int
    """Payload handed to the network so far, repeats not counted."""
    bytes_received: int = 0
    """Payload received so far."""
    quiet_ms: int = 0
    """Time since it last sent payload."""


class Listing(NamedTuple):
    """The connections of a moment, as far as there is anything to say of them."""

    connections: list[Connection]
    """Those that were not known, and those of the known ones that have carried something."""
    present: Sequence[int]
    """Cookies of all the known ones that are still there."""
