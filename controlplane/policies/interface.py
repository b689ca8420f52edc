"""What every policy is: one pure function, the same in controller, simulator and ``leveller levels``."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from controlplane.model import Group, Job, Levels


class Scope(StrEnum):
    """How far one level of a group reaches."""

    FABRIC = "fabric"
    """One level per flow for the whole fabric, as the paper has it."""
    SWITCH = "switch"
    """A level per switch: only what contends on a switch's own ports is ranked there. It is what ``port``
    gives, except where a path leaves one switch by several ports: these then share a level."""
    PORT = "port"
    """A level per switch egress port: only jobs that meet there are ranked there."""


class Policy(Protocol):
    """Gives every group a level on every link of its path.

    ``jobs`` has each job that ``groups`` name, once; ``count`` is the number of levels K >= 1. The answer
    depends on nothing else, so that two controllers with the same reports compute the same ranking. A policy
    with options is this function with the options bound. Who ranks the same groups again and again passes
    them as `controlplane.policies.Incidence`: the answer is the same, and comes sooner.
    """

    def __call__(self, jobs: Sequence[Job], groups: Sequence[Group], count: int, scope: Scope) -> Levels:
        """Return group id -> link -> level in 0..count-1. ValueError: a group's job is not in ``jobs``."""
        ...
