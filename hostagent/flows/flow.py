"""A flow of a job on this host, and how much it has carried of late."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

HALF_LIFE_NS = 30 * 10**9
"""What a connection carried so long ago counts for half."""


class FlowKind(IntEnum):
    """What a flow is for; the numbers are the protocol's."""

    COLLECTIVE = 1
    CONTROL = 2


@dataclass(slots=True)
class Flow:
    """A flow of job ``job``; ``opened_ns`` is when it was first seen (monotonic)."""

    job: str
    cookie: int
    opened_ns: int
    bytes_sent: int = 0
    user: int = 0
    """Whose job it is of."""
    kind: FlowKind = FlowKind.CONTROL
    service: bool = False
    """Its ports are a service's: it is no collective, whatever it carries."""
    communicator: int = 0
    """NCCL communicator that it belongs to; 0: not known."""
    destroyed: bool = False
    """Its socket is no more, though the connections have not been listed since."""
    carried: int = 0
    """Bytes in both directions so far."""
    weight: float = -math.inf
    """What it carried, faded by age: log2 of the bytes that it would be, had all been carried at time 0.

    So a flow that carries nothing need not be looked at: all fade alike, and only their ratio is of interest.
    """

    def carry(self, total: int, now_ns: int) -> None:
        """Take in that it has carried ``total`` bytes by ``now_ns``."""
        if total > self.carried:
            more = math.log2(total - self.carried) + now_ns / HALF_LIFE_NS
            high, low = max(self.weight, more), min(self.weight, more)
            self.weight = high + math.log2(1 + 2.0 ** (low - high))
        self.carried = total
