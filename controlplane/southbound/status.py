"""What the southbound tells the rest of the controller: outcomes of an apply, and the state of a switch."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class Result(enum.StrEnum):
    """How an ``apply`` ended on one switch."""

    APPLIED = "applied"
    """Everything is in force, but for the ``refused`` entries that are counted."""
    SUPERSEDED = "superseded"
    """A newer ``apply`` took its place before it was complete."""
    BACKUP = "backup"
    """Another controller is the switch's primary; it will be applied if this one takes over."""
    DISCONNECTED = "disconnected"
    """No session; it will be applied when the switch is back."""
    FAILED = "failed"
    """The switch did not take it; ``error`` says why. The session reconnects and reconciles."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One switch's answer to an ``apply``: times are seconds since the call."""

    result: Result
    flip_s: float | None = None
    """When the switch acknowledged the new ranking's bank; None where no flip was needed or it never came."""
    total_s: float = 0.0
    updates: int = 0
    """P4Runtime updates sent."""
    refused: int = 0
    """Wanted entries that the switch does not hold, because it refused them or has no room."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class SwitchStatus:
    """A switch as its session sees it now."""

    name: str
    address: str
    connected: bool = False
    primary: bool = False
    error: str | None = None
    """The last thing that went wrong, for a person; None once the switch is in order again."""
    active_bank: int | None = None
    entries: Mapping[str, int] = field(default_factory=dict)
    """Table -> entries the switch holds."""
    refused: Mapping[str, int] = field(default_factory=dict)
    """Table -> wanted entries that the switch does not hold: it refused them, or has no room."""
    left_out: Mapping[int, int] = field(default_factory=dict)
    """Group -> flows that run at the default level, since the switch has no room for their entries."""
    sessions: int = 0
    """Connections made so far that got as far as arbitration."""
    pipeline_pushes: int = 0
    bad_reports: int = 0
    """Packet-ins that were not a well-formed INT probe."""
