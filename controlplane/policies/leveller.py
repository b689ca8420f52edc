"""LEVELLER: the job with the lowest normalized progress rate goes first (paper, rule of Theorem 1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controlplane.model import Group, Job, Levels
from controlplane.policies.interface import Scope
from controlplane.policies.ordered import levels_in_order

DIGITS = 12
"""R over weight is compared at so many digits: equal progress is a tie, and no matter of rounding."""


def levels(jobs: Sequence[Job], groups: Sequence[Group], count: int, scope: Scope) -> Levels:
    """Rank jobs by increasing R over weight.

    Ties, which the paper leaves open: fewest completed iterations first, then the smaller id (as text).
    """
    return levels_in_order([job.id for job in order(jobs)], groups, count, scope)


def order(jobs: Iterable[Job]) -> list[Job]:
    """Return ``jobs``, the one that goes first first."""
    return sorted(jobs, key=lambda job: (round(job.rate / job.weight, DIGITS), job.iterations, job.id))
