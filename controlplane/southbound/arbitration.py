"""Which controller is a switch's primary: our side of P4Runtime's arbitration. Pure.

Specification, section 5: the primary is the client whose election id is at least the highest the switch
ever saw; when it leaves there is none until someone asserts again. bmv2 differs: it makes the next live
client primary by itself and says so with status OK and that client's id. Both are followed here.

Election ids have 128 bits. The configured rank is their upper half, so that a tool that comes with
election id 1 or 10 does not depose a controller. The lower half is the time at which the session began: a
controller that comes back is above the session it lost, which the switch may not have noticed yet; a write
left over from that one is refused from then on; and no two sessions have the same id.
"""

from __future__ import annotations

import time

from finsy.grpcutil import GRPCStatusCode
from finsy.proto import U128, p4r

from controlplane.southbound.errors import SwitchError


class Election:
    """One controller's standing on one switch, across its sessions."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._began_us = 0
        self.id = 0
        """The election id last asserted, as an integer."""
        self.primary = False

    def begin(self) -> int:
        """Start a session; return the id to assert first."""
        self._began_us = max(self._began_us + 1, time.time_ns() // 1000)
        self.id = self._rank << 64 | self._began_us
        self.primary = False
        return self.id

    def update(self, message: p4r.MasterArbitrationUpdate) -> int | None:
        """Take in what the switch said; return the id to assert now, None where there is nothing to do.

        Raises SwitchError for a status that the specification does not know.
        """
        code = message.status.code
        self.primary = code == GRPCStatusCode.OK
        if code == GRPCStatusCode.NOT_FOUND:
            # Nobody is primary. Ranks differ, so backups that see this together claim different ids.
            self.id = max(self.id, U128.decode(message.election_id)) + self._rank
            return self.id
        if code not in (GRPCStatusCode.OK, GRPCStatusCode.ALREADY_EXISTS):
            raise SwitchError(f"arbitration ended with status {code} ({message.status.message})")
        return None
