"""Symphony-like: inside a job, flows that outpace the others give way (after Symphony, arXiv 2604.16880).

In the paper a switch tracks each job's progress in a ring step and sends congestion signals to the flows that
are ahead. Its thresholds are not public, so this is only like it: a flow is ahead when more of what it now
sends has arrived, by more than `THRESHOLD`, than of the slowest flow of its job. Where the paper slows such
flows down, here they go behind all others until the rest of their job has caught up.
"""

from __future__ import annotations

from collections.abc import Sequence

from controlplane.model import Group, Job, Levels
from controlplane.policies.interface import Scope

THRESHOLD = 0.1
"""How much further, as a share of what it sends, a flow may be than its job's slowest. Our own choice."""


def levels(jobs: Sequence[Job], groups: Sequence[Group], count: int, scope: Scope) -> Levels:  # noqa: ARG001
    """Put the groups that are ahead at level 0 and all others at level 1 (0 where there is no other).

    Groups of which nobody knows what they have ``sent`` are never ahead. ValueError where ``count`` < 1.
    """
    if count < 1:
        raise ValueError(f"count = {count}: there must be at least one level")
    slowest: dict[str, float] = {}
    for group in groups:
        if group.sent is not None:
            slowest[group.job] = min(slowest.get(group.job, 1.0), group.sent)
    normal = min(1, count - 1)
    return {
        group.id: dict.fromkeys(
            group.path,
            0 if group.sent is not None and group.sent - slowest[group.job] > THRESHOLD else normal,
        )
        for group in groups
    }
