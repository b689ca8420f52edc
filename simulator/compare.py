"""Several policies on one scenario: the same seeds, hence the same jobs, places, paths and jitter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev
from types import MappingProxyType

from simulator.fabric import Fabric
from simulator.results import Result
from simulator.run import simulate
from simulator.scenario import Scenario

FIGURES: Mapping[str, str] = MappingProxyType(
    {
        "min_R": "minimum R",
        "avg_R": "average R",
        "jain": "Jain",
        "gpu_utilization": "GPU utilization",
        "settled_R": "settled R",
        "recovery_s": "recovery, s",
    }
)
"""What is compared, by its name in a run's JSON, and what people call it."""


def figures(runs: Iterable[Mapping[str, object]]) -> list[str]:
    """Return which of `FIGURES` all runs have, given as JSON: some have nothing that came to recover from."""
    return [figure for figure in FIGURES if all(figure in run for run in runs)]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds and the half-width of its 95 % confidence interval (normal; 0 for one seed)."""

    mean: float
    half_width: float


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean of one value or more, and its interval."""
    width = NormalDist().inv_cdf(0.975) * stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return Estimate(fmean(values), width)


@dataclass(frozen=True, slots=True)
class Summary:
    """A policy's runs, one per seed, in the seeds' order."""

    policy: str
    seeds: Sequence[int]
    runs: Sequence[Result]

    def estimate(self, figure: str) -> Estimate:
        """Return the mean over seeds of one of `FIGURES`."""
        return estimate([float(str(run.as_json()[figure])) for run in self.runs])

    def as_json(self) -> dict[str, object]:
        """Return the figures' means, their intervals' half-widths, and every run."""
        runs = [run.as_json() for run in self.runs]
        estimates = {figure: self.estimate(figure) for figure in figures(runs)}
        return {
            "policy": self.policy,
            **{figure: estimate.mean for figure, estimate in estimates.items()},
            "ci95": {figure: estimate.half_width for figure, estimate in estimates.items()},
            "runs": [{"seed": seed, **run} for seed, run in zip(self.seeds, runs, strict=True)],
        }


def compare_policies(
    scenario: Scenario,
    fabric: Fabric,
    policies: Sequence[str],
    seeds: Sequence[int],
    bar: Callable[[str], Callable[[float], object]],
) -> list[Summary]:
    """Run every policy with every seed; ``bar(label)`` gives what to tell the simulated time to."""
    return [
        Summary(
            policy,
            seeds,
            [simulate(scenario, fabric, policy, seed, bar(f"{policy} {seed}")) for seed in seeds],
        )
        for policy in policies
    ]
