"""Static priority by intensity, as Crux orders jobs: progress plays no part, so a job may starve."""

from __future__ import annotations

from collections.abc import Sequence

from controlplane.model import Group, Job, Levels
from controlplane.policies.interface import Scope
from controlplane.policies.ordered import levels_in_order


def levels(jobs: Sequence[Job], groups: Sequence[Group], count: int, scope: Scope) -> Levels:
    """Rank jobs by decreasing intensity; ties go to the smaller id (as text)."""
    order = sorted(jobs, key=lambda job: (-job.intensity, job.id))
    return levels_in_order([job.id for job in order], groups, count, scope)
