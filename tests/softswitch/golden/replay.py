"""Golden cases: what bmv2 was seen to do, as JSON, and how to have a switch do it again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from softswitch.entries import GroupRef, MemberRef

CASES = Path(__file__).parent / "cases"


def load(name: str) -> dict[str, Any]:
    """A golden case: its program, writes, packets with what was sent and learnt for each, and counters."""
    case: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text())
    return case


def write(switch: Any, writes: list[list[Any]]) -> None:
    """Have a switch (``Ours``, ``Bmv2``) take the writes of a case."""
    for method, arguments in writes:
        if method == "insert":
            table, match, action, values, priority = arguments
            switch.insert(table, _match(match), _action(action), *values, priority=priority)
        elif method in ("member", "set_default"):
            *rest, values = arguments
            getattr(switch, method)(*rest, *values)
        elif method in ("replicate", "clone"):
            number, replicas = arguments
            getattr(switch, method)(number, [tuple(replica) for replica in replicas])
        else:
            getattr(switch, method)(*arguments)


def listed(sent: list[tuple[int, bytes]]) -> list[list[Any]]:
    """Packets sent as a case has them: sorted, for bmv2's egress threads run side by side."""
    return sorted([port, packet.hex()] for port, packet in sent)


def step(switch: Any, port: int, packet: bytes, expected: dict[str, Any] | None = None) -> dict[str, Any]:
    """Have a switch take a packet; return it as a case has it, with what was sent and learnt.

    ``expected`` is what another switch did: bmv2 is waited for until it has done as much.
    """
    if expected is None:
        before = len(switch.digests)
        sent, digests = switch.ports(packet, port), switch.digests[before:]
    else:
        sent = switch.ports(packet, port, len(expected["sent"]))
        # Asked for at once: a digest that comes before the last one is acknowledged, bmv2 loses.
        digests = switch.learnt(len(expected.get("digests", ()))) if switch.learns else []
    found: dict[str, Any] = {"port": port, "packet": packet.hex(), "sent": listed(sent)}
    if digests:
        found["digests"] = [[name, list(values)] for name, values in sorted(digests)]
    return found


def counted(switch: Any) -> dict[str, Any]:
    """What else a case has: the counters after all packets."""
    return {"counters": switch.counters(), "direct_counters": switch.direct_counters()}


def _match(match: list[Any]) -> list[Any]:
    return [tuple(m) if isinstance(m, list) else m for m in match]


def _action(action: str | dict[str, int]) -> str | MemberRef | GroupRef:
    if isinstance(action, str):
        return action
    ((kind, number),) = action.items()
    return MemberRef(number) if kind == "member" else GroupRef(number)
