"""Generated workloads: jobs that arrive at random at a given load."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from leveller.config import Section
from simulator.bounds import Gpus, Iterations, Jitter, PositiveBytes, PositiveSeconds


class Workload(Section):
    """``jobs`` jobs that arrive as a Poisson process and ask for ``load`` of all GPUs.

    A job's size is one of ``gpus``; computing, data (bytes a host) and iterations are uniform between bounds.
    ``all_to_all`` is the share of jobs whose traffic is all-to-all, the others' is a ring. The load counts
    jobs as if each ran alone: contention makes them longer.
    """

    kind: Literal["drawn"] = "drawn"
    jobs: Annotated[int, Field(ge=1, le=20_000)]
    load: Annotated[float, Field(gt=0, le=2, allow_inf_nan=False)] = 0.8
    gpus: Annotated[list[Gpus], Field(min_length=1)] = Field(default=[8, 16, 32, 64])
    compute_s: tuple[PositiveSeconds, PositiveSeconds] = (0.1, 1.0)
    bytes: tuple[PositiveBytes, PositiveBytes] = (1e9, 2e10)
    iterations: tuple[Iterations, Iterations] = (100, 1000)
    all_to_all: Annotated[float, Field(ge=0, le=1)] = 0.0
    jitter: Jitter = 0.0

    @model_validator(mode="after")
    def _ordered(self) -> Workload:
        for name in ("compute_s", "bytes", "iterations"):
            low, high = getattr(self, name)
            if low > high:
                raise ValueError(f"{name} = [{low}, {high}]: put the smaller one first")
        return self


@dataclass(frozen=True, slots=True)
class Drawn:
    """A job as it was drawn; ``gap`` is its arrival's distance from the one before it, in mean gaps."""

    gpus: int
    compute_s: float
    bytes: float
    iterations: int
    all_to_all: bool
    gap: float


def draw(workload: Workload, seed: int) -> Iterator[Drawn]:
    """Draw the jobs. The same seed gives the same jobs, whatever the fabric."""
    random = np.random.default_rng([seed, 2])
    for _ in range(workload.jobs):
        yield Drawn(
            gpus=int(random.choice(workload.gpus)),
            compute_s=float(random.uniform(*workload.compute_s)),
            bytes=float(random.uniform(*workload.bytes)),
            iterations=int(random.integers(workload.iterations[0], workload.iterations[1] + 1)),
            all_to_all=bool(random.random() < workload.all_to_all),
            gap=float(random.exponential()),
        )
