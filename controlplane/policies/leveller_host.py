"""LEVELLER as published: hosts mark, so a flow has one level for the whole fabric, and changes cost.

For a change of level a host drains, resets and rebuilds a queue pair, which takes a few milliseconds, so
rankings are a minute or so apart. The ranking itself is that of `controlplane.policies.leveller`.
"""

from __future__ import annotations

from collections.abc import Sequence

from controlplane.model import Group, Job, Levels
from controlplane.policies import leveller
from controlplane.policies.interface import Scope

TAU_S = 60.0
"""Seconds between rankings: the paper says 'minute-level'."""

STALL_S = 0.005
"""Seconds that a flow stands still when its level changes: the paper says 'a few ms'."""


def levels(jobs: Sequence[Job], groups: Sequence[Group], count: int, scope: Scope) -> Levels:  # noqa: ARG001
    """Rank as LEVELLER does under scope ``fabric``, whatever ``scope`` says."""
    return leveller.levels(jobs, groups, count, Scope.FABRIC)
