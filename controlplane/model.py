"""The nouns of the control plane: links, flows, jobs, groups and levels.

Plain immutable values, no I/O. Everything between a report and a write speaks in these terms; the words
are those of the design: *level* 0 is the lowest, a *link* is a switch's egress port, a *group* is the
flows of one job that take the same path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple


class Link(NamedTuple):
    """One direction of a cable: the egress port ``port`` of switch ``switch``. Written ``S1:3``."""

    switch: str
    port: int

    def __str__(self) -> str:
        return f"{self.switch}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Link:
        """Read ``"S1:3"``. Raises ValueError where that is not a switch, a colon and a port number."""
        switch, colon, port = text.rpartition(":")
        if not (colon and switch and port.isdecimal()):
            raise ValueError(f"link {text!r} is not SWITCH:PORT, such as 'S1:3'")
        return cls(switch, int(port))


Path = tuple[Link, ...]
"""The links a flow crosses, first hop first."""


class FiveTuple(NamedTuple):
    """One direction of a transport flow; ``destination_qp`` 0 means any RoCEv2 queue pair."""

    source: IPv4Address | IPv6Address
    destination: IPv4Address | IPv6Address
    protocol: int
    source_port: int
    destination_port: int
    destination_qp: int = 0

    def __str__(self) -> str:
        protocol = {6: "tcp", 17: "udp"}.get(self.protocol, str(self.protocol))
        text = f"{protocol} {self.source}:{self.source_port} > {self.destination}:{self.destination_port}"
        return f"{text} qp {self.destination_qp}" if self.destination_qp else text


@dataclass(frozen=True, slots=True)
class Job:
    """A job as a policy sees it.

    ``rate`` is the normalized progress rate R in [0, 1], ``iterations`` breaks ties on it, ``intensity``
    is Crux's computation per communication second (higher goes first under ``static``). ``compute_s`` and
    ``comm_s`` are seconds of an iteration alone, the latter on its busiest link (0: unknown). A job of
    ``weight`` 2 is owed twice the progress of one of weight 1.
    """

    id: str
    rate: float = 0.0
    iterations: int = 0
    intensity: float = 0.0
    compute_s: float = 0.0
    comm_s: float = 0.0
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Group:
    """The flows of job ``job`` that take ``path``: the unit that is ranked and written.

    ``load`` is what it sends in an iteration, in any unit common to all groups (1 for each where unknown).
    ``key`` is its coflow's place in the job where somebody knows it (`controlplane.policies.hermod`): flows
    of several coflows on one path are then several groups. ``sent`` is how much of what it now sends has
    arrived, from 0 to 1 (None: it sends nothing, or nobody knows).
    """

    id: str
    job: str
    path: Path
    load: float = 1.0
    key: tuple[int, int, int] = (0, 0, 0)
    sent: float | None = None


Levels = Mapping[str, Mapping[Link, int]]
"""Group id -> link on its path -> level. Under scope ``fabric`` all links of a group carry the same level."""
