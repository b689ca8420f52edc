"""One knob between fairness and efficiency: LEVELLER at 0, Crux at 1, and a blend of their orders between.

The papers leave the middle open, so this is ours: jobs are ranked by (1 - e) times their place in LEVELLER's
order plus e times their place in Crux's. Places, unlike R and intensity, have one scale.
"""

from __future__ import annotations

from collections.abc import Sequence

from controlplane.model import Group, Job, Levels
from controlplane.policies import crux, leveller
from controlplane.policies.interface import Policy, Scope
from controlplane.policies.ordered import levels_in_order


def blend(efficiency: float) -> Policy:
    """Return the policy for ``efficiency`` in [0, 1]; 0 and 1 are ``leveller`` and ``crux`` themselves.

    Ties go by LEVELLER's order. ValueError outside of [0, 1].
    """
    if not 0 <= efficiency <= 1:
        raise ValueError(f"efficiency = {efficiency}: give 0 (fair) to 1 (efficient)")
    if efficiency == 0:
        return leveller.levels
    if efficiency == 1:
        return crux.levels

    def levels(jobs: Sequence[Job], groups: Sequence[Group], count: int, scope: Scope) -> Levels:
        fair = [job.id for job in leveller.order(jobs)]
        efficient = {job: place for place, job in enumerate(crux.order(jobs))}
        score = {
            job: (1 - efficiency) * place + efficiency * efficient[job] for place, job in enumerate(fair)
        }
        return levels_in_order(sorted(fair, key=score.__getitem__), groups, count, scope)

    return levels
