"""A generator of 'Lingjun-like' jobs: drawn from what is published about the trace, never a replay of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simulator.traces.rows import TraceJob

MINUTES = ((0.0, 1.0), (0.5, 4.0), (0.9, 165.0), (0.99, 3288.0), (1.0, 20_631.0))
"""(quantile, minutes) of the jobs' duration. The smallest is the trace's resolution."""

SIZES = (
    (694, (1, 2, 4)),
    (1746, (8, 16, 24, 32, 40, 48, 56)),
    (170, tuple(range(64, 128, 8))),
    (206, tuple(range(128, 745, 8))),
)
"""(jobs of the 2,816 with GPUs, GPUs): 2,122 have at least 8, 376 >= 64, 206 >= 128, none more than 744."""


def draw(count: int, least: int, seed: int) -> Iterator[tuple[TraceJob, float]]:
    """Draw ``count`` jobs of at least ``least`` GPUs, each with its arrival's gap, in mean gaps.

    Ours, since it is not published: durations between the quantiles are uniform on a logarithmic scale;
    within a class of sizes, multiples of a host's 8 GPUs are likely in proportion to 1 / size; size and
    duration are independent; arrivals are a Poisson process.
    """
    random = np.random.default_rng([seed, 5])
    within, chances = _sizes(least)
    quantiles, logs = [at for at, _ in MINUTES], [float(np.log(minutes)) for _, minutes in MINUTES]
    for number in range(1, count + 1):
        minutes = float(np.exp(np.interp(random.random(), quantiles, logs)))
        gpus = int(random.choice(within, p=chances))
        gap = float(random.exponential())
        yield TraceJob(f"lingjun-like-{number}", 0.0, 60 * minutes, gpus), gap


def sizes(least: int) -> list[int]:
    """Return the sizes that a job of at least ``least`` GPUs can have."""
    return _sizes(least)[0]


def _sizes(least: int) -> tuple[list[int], list[float]]:
    sizes, weights = [], []
    for jobs, within in SIZES:
        whole = sum(1 / size for size in within)
        for size in within:
            if size >= least:
                sizes.append(size)
                weights.append(jobs / size / whole)
    return sizes, [weight / sum(weights) for weight in weights]
