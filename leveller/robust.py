"""Statistics that a few wild values cannot move: the median, and the median absolute deviation.

Durations of training iterations have wild values by nature: warm-up, compilation, checkpoints, evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

_SIGMA_OF_MAD = 1.4826
"""Standard deviations in a median absolute deviation of a normal distribution."""

_MEDIAN_ERROR = 1.2533
"""Standard error of the median of a normal distribution, over that of its mean."""

_HALF_WIDTH = 1.96
"""Standard errors on either side within which 95 % lie."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value out of ``count`` samples, and their ``spread`` (in standard deviations' terms)."""

    value: float
    spread: float
    count: int

    @property
    def confidence(self) -> float:
        """How far to trust ``value``, from 0 to 1.

        One minus the half-width of the 95 % interval of the median relative to it, times ``1 - 1/count``: a
        single sample is not to be trusted, however well it agrees with itself.
        """
        if self.value <= 0 or self.count < 1:
            return 0.0
        half = _HALF_WIDTH * _MEDIAN_ERROR * self.spread / (math.sqrt(self.count) * self.value)
        return max(0.0, 1.0 - half) * (1.0 - 1.0 / self.count)


def estimate(samples: Sequence[float]) -> Estimate:
    """Return the median of ``samples``, with their spread. ValueError: there are none."""
    if not samples:
        raise ValueError("no samples")
    middle = median(samples)
    return Estimate(middle, _SIGMA_OF_MAD * median(abs(sample - middle) for sample in samples), len(samples))


def agreeing(samples: Sequence[float], least: int, tolerance: float) -> Sequence[float]:
    """Return the fastest ``least`` or more of ``samples`` that agree; nothing where too few do.

    Samples agree when the largest is at most ``tolerance`` (a fraction) above the smallest. Others may lie
    between them in time, as a checkpoint or an evaluation does; at most ``(least - 1) // 2`` may be smaller,
    since what disturbs an iteration makes it longer and hardly ever shorter.
    """
    ordered = sorted(samples)
    for first in range(min((least - 1) // 2, len(ordered) - least) + 1):
        run = [value for value in ordered[first:] if value <= ordered[first] * (1 + tolerance)]
        if len(run) >= least:
            return run
    return []
