"""What one step of the engine comes to: what each switch should hold, and how it stands with every job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from controlplane.changes import LevelChange
from controlplane.groups import Placement
from controlplane.model import Job, Levels
from controlplane.plausibility import Verdict
from controlplane.progress import JobProgress
from controlplane.southbound import Desired


@dataclass(frozen=True, slots=True)
class RankedJob:
    """A job as the last step saw it."""

    progress: JobProgress
    as_ranked: Job
    """What the policy was told of it."""
    t_ideal_ns: int | None
    state: str
    """``profiling``, ``waiting``, ``ranked``, ``silent``, or ``no progress``."""
    reason: str
    t_ideal_confidence: float | None = None
    """How far to trust ``t_ideal_ns``, from 0 to 1."""
    verdict: Verdict = field(default_factory=Verdict)
    """What the switches' counters say of its word."""

    @property
    def rate(self) -> float:
        """R."""
        return self.as_ranked.rate


@dataclass(frozen=True, slots=True)
class Step:
    """What one step came to."""

    now_ns: int
    desired: Mapping[str, Desired]
    """Per switch."""
    jobs: Mapping[str, RankedJob] = field(default_factory=dict)
    placement: Placement = field(default_factory=Placement)
    levels: Levels = field(default_factory=dict)
    changes: Sequence[LevelChange] = ()
    forgotten: Sequence[str] = ()
    """Hosts that were silent for so long that all they said is dropped."""
