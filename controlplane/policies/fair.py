"""Flow-fair sharing: all flows at one level, what TCP or DCQCN makes of a link left to itself."""

from __future__ import annotations

from collections.abc import Sequence

from controlplane.model import Group, Job, Levels
from controlplane.policies.interface import Scope


def levels(jobs: Sequence[Job], groups: Sequence[Group], count: int, scope: Scope) -> Levels:  # noqa: ARG001
    """Put everything at level 0, beside the traffic that no flow entry knows."""
    return {group.id: dict.fromkeys(group.path, 0) for group in groups}
