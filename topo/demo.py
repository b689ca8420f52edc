"""The demonstration: real training-like jobs through P4 switches, policy by policy, measured."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from controlplane.model import Path
from topo import measure, namespace, shifts, theory
from topo.fabric import Fabric
from topo.files import Policy
from topo.lab import Lab
from topo.scenario import Scenario

CASSINI = "cassini"
"""A policy that is no ranking: the controller's is ``fair``, and jobs start their iterations when told."""

IGNORE_PROGRESS = (CASSINI, "crux", "fair", "sincronia", "static")
"""Policies that never look at R, so that no job need be held back to measure T_ideal."""


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """A job under a policy: R measured, over how many iterations, and R in theory (None: paths unknown)."""

    id: str
    rate: float
    iterations: int
    theory: float | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A policy's run."""

    policy: str
    jobs: tuple[JobOutcome, ...]

    @property
    def minimum(self) -> float:
        """The lowest R."""
        return min(job.rate for job in self.jobs)

    @property
    def average(self) -> float:
        """The mean R."""
        return sum(job.rate for job in self.jobs) / len(self.jobs)

    def to_json(self) -> dict[str, Any]:
        """Return what ``--json`` prints of it."""
        jobs = [{"id": job.id, "R": round(job.rate, 4), "iterations": job.iterations} for job in self.jobs]
        return {
            "policy": self.policy,
            "jobs": jobs,
            "min_R": round(self.minimum, 4),
            "avg_R": round(self.average, 4),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run: ``warmup_s`` from the jobs' start (profiling is in it), then ``seconds`` are measured."""

    name: str
    scenario: Scenario
    policies: Sequence[str]
    switch: str
    scope: str
    warmup_s: float
    seconds: float


Say = Callable[[str, float, dict[str, Any] | None], None]
"""``say(what is going on, the share of the run done, the controller's status if asked)``."""


def run(plan: Plan, console: Console) -> list[Outcome]:
    """Run every policy of ``plan`` in a fresh lab, with live progress on ``console``."""
    fabric = plan.scenario.fabric.build()
    outcomes: list[Outcome] = []
    with _screen(plan, outcomes, console) as say:
        outcomes.extend(_run_policy(plan, fabric, policy, say) for policy in plan.policies)
    return outcomes


def _run_policy(plan: Plan, fabric: Fabric, policy: str, say: Say) -> Outcome:
    scenario = plan.scenario
    directory = namespace.DIRECTORY / policy
    directory.mkdir()
    say("starting switches", 0, None)
    with Lab(fabric, plan.switch, directory) as lab:
        say("starting the controller and the agents", 0, None)
        profile = policy not in IGNORE_PROGRESS
        ranking = "fair" if policy == CASSINI else policy
        lab.start_controller(Policy(ranking, plan.scope, scenario.intensities(), profile=profile))
        lab.start_agents()
        lab.wait_ready()
        lab.start_jobs(scenario)
        begin = lab.jobs[0].start + plan.warmup_s
        end = begin + plan.seconds
        status: dict[str, Any] | None = None
        paths: dict[str, list[Path]] | None = None
        while (now := time.time()) < end:
            lab.check()
            with contextlib.suppress(OSError):
                status = lab.status()
                known, paths = paths, theory.flow_paths(status, scenario) or paths
                if policy == CASSINI and paths and paths != known:
                    _shift(lab, scenario, fabric, paths)
            doing = "warming up" if now < begin else "measuring"
            say(doing, 1 - (end - now) / (plan.warmup_s + plan.seconds), status)
            time.sleep(min(0.5, max(0.0, end - now)))
        expected = {}
        if paths and policy != CASSINI:  # whose shifts the fluid model does not know
            expected = theory.long_run(scenario, fabric, policy, plan.scope, paths)
        return Outcome(policy, tuple(_outcomes(lab, scenario, begin, end, expected)))


def _shift(lab: Lab, scenario: Scenario, fabric: Fabric, paths: Mapping[str, Sequence[Path]]) -> None:
    """Tell every job that shares a link when to start its iterations."""
    found = shifts.slots(scenario, fabric, paths)
    for job in lab.jobs:
        if job.spec.id in found:
            offset, cycle = found[job.spec.id]
            job.keep_to(job.start + offset, cycle)


def _outcomes(
    lab: Lab, scenario: Scenario, begin: float, end: float, expected: dict[str, float]
) -> Iterator[JobOutcome]:
    for running, job in zip(lab.jobs, scenario.jobs, strict=True):
        ends = measure.iteration_ends(running.log, job.log, running.start)
        progress = measure.progress(ends, scenario.ideal_s(job), begin, end)
        yield JobOutcome(job.id, progress.rate, progress.iterations, expected.get(job.id))


@contextlib.contextmanager
def _screen(plan: Plan, outcomes: list[Outcome], console: Console) -> Iterator[Say]:
    """Show, while the block runs, what was measured so far and the present policy's R job by job."""
    with Live(console=console, refresh_per_second=4, transient=True) as live:

        def say(doing: str, share: float, status: dict[str, Any] | None) -> None:
            policy = plan.policies[min(len(outcomes), len(plan.policies) - 1)]
            now = Table(box=None, title=f"{policy}: {doing}", title_justify="left")
            for column in ("job", "R so far", "iterations", "state"):
                now.add_column(column)
            for job in (status or {}).get("jobs", ()):
                rate = "" if job["R"] is None else f"{job['R']:.3f}"
                now.add_row(job["id"], rate, str(job["iterations"]), str(job["state"]))
            done = (len(outcomes) + share) / len(plan.policies)
            parts = [table(plan, outcomes)] if outcomes else []
            live.update(Group(*parts, now, ProgressBar(total=1.0, completed=done, width=60)))

        yield say


def table(plan: Plan, outcomes: Sequence[Outcome]) -> Table:
    """Return the one table of the demonstration: R measured, and in theory (in parentheses), by policy."""
    result = Table(title=f"R measured (theory) on scenario {plan.name}, {plan.switch}", title_justify="left")
    result.add_column("policy")
    for job in plan.scenario.jobs:
        units = f"({job.compute:g}, {job.communicate:g})"
        result.add_column(f"{job.id} {units}", justify="right")
    result.add_column("minimum", justify="right")
    result.add_column("average", justify="right")
    for outcome in outcomes:
        expected = [job.theory for job in outcome.jobs if job.theory is not None]
        complete = len(expected) == len(outcome.jobs)
        result.add_row(
            outcome.policy,
            *(_cell(job.rate, job.theory) for job in outcome.jobs),
            _cell(outcome.minimum, min(expected) if complete else None),
            _cell(outcome.average, sum(expected) / len(expected) if complete else None),
        )
    return result


def _cell(measured: float, expected: float | None) -> Text:
    text = Text(f"{measured:.3f}", style="bold")
    return text.append(" (?)" if expected is None else f" ({expected:.3f})", style="dim")
