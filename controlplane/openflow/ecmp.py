"""The contract's ``ecmp`` rows as OpenFlow groups. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from controlplane.southbound.tables import Call, Key


@dataclass(slots=True)
class EcmpGroups:
    """The ``ecmp`` rows, group by group: a group's buckets are written all at once."""

    members: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)
    """Group -> member -> (port, MAC address)."""

    def set(self, key: Key, call: Call | None) -> tuple[int, Call | None]:
        """Note a row, or that it is gone; return the group that it belongs to, and what it was before."""
        group, member = (value for value in key if isinstance(value, int))
        buckets = self.members.setdefault(group, {})
        before = Call("set_nhop", buckets[member]) if member in buckets else None
        if call is None:
            buckets.pop(member, None)
        else:
            port, mac = call.args
            buckets[member] = port, mac
        return group, before

    def buckets(self, group: int) -> Sequence[tuple[int, int]]:
        """Return (port, MAC address) of each member, in the members' order."""
        return [hop for _, hop in sorted(self.members.get(group, {}).items())]

    def rows(self) -> dict[tuple[str, Key], Call]:
        """Return all rows."""
        return {
            ("ecmp", (group, member)): Call("set_nhop", hop)
            for group, buckets in self.members.items()
            for member, hop in buckets.items()
        }
