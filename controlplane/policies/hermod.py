"""Hermod (SIGCOMM 2025, short): a static order of a job's own coflows. It says nothing across jobs.

A coflow's key, ascending: its micro-batch, then its kind, then its layer. The paper leaves open what happens
to ties, how keys become queues, and where tensor parallelism stands: here equal keys share a level, the
keys of a job that follow the last level share level 0, and tensor parallelism goes with those that others
wait for. Every job starts at the top level.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from controlplane.model import Group, Job, Levels
from controlplane.policies.interface import Scope


class Kind(IntEnum):
    """What a coflow is for. Expert, pipeline and tensor parallelism go before data parallelism."""

    EP = 0
    PP = 0
    TP = 0
    DP = 1


class Key(NamedTuple):
    """A coflow's place in its job, for `controlplane.model.Group.key`; the lowest goes first."""

    micro_batch: int = 0
    kind: Kind = Kind.DP
    layer: int = 0


def levels(jobs: Sequence[Job], groups: Sequence[Group], count: int, scope: Scope) -> Levels:  # noqa: ARG001
    """Rank each job's coflows by key, whatever other jobs do. ValueError where ``count`` < 1."""
    if count < 1:
        raise ValueError(f"count = {count}: there must be at least one level")
    places = places_in_job(groups)
    return {group.id: dict.fromkeys(group.path, max(count - 1 - places[group.id], 0)) for group in groups}


def places_in_job(groups: Sequence[Group]) -> dict[str, int]:
    """Return, for each group, how many different keys of its job go before its own."""
    keys: defaultdict[str, set[tuple[int, int, int]]] = defaultdict(set)
    for group in groups:
        keys[group.job].add(group.key)
    place = {job: {key: place for place, key in enumerate(sorted(found))} for job, found in keys.items()}
    return {group.id: place[group.job][group.key] for group in groups}
