"""Whether what a job says of its progress can be true, by what the switches counted. Pure: told the time.

A job sends the same bytes in every iteration. So what its flows' entries have counted, divided by the bytes
of an iteration, is what it has done, whatever its log says. Who tells of fewer iterations than that, to look
starved, is found out.

- *Reference.* While a job is profiled it runs alone at full rate. Its counters are read as it tells of
  iterations, and the fastest ``window`` of them (so that warm-up, a checkpoint or an evaluation between does
  not count) give its byte rate by our clock. That times T_ideal is the bytes of an iteration: what a job says
  of T_ideal and what it counts are held against each other, and neither can be lowered alone. Where its
  iterations were not stable, T_ideal is no shorter than their time by our clock.
- *Test.* Later the counters are read now and then. Over the last ``min_iterations`` by the bytes, or four
  times what its log tells at once if that is more, the bytes may be worth ``tolerance`` of them more than the
  job told, and two. Twice in a row beyond that, it is flagged; twice in a row within half of it, it is not
  any more.
- *What follows.* The iterations that the bytes were worth and the job did not tell are added to its count. So
  R is never below what the job says: counters take a job's priority, and never give it one. What was added
  stays, so that a job which lies now and then gains nothing.
- A count that goes back (a rollback to a checkpoint, and those bytes are sent anew) begins the test anew, but
  only once in `ROLLBACK_EVERY_NS`.
- Only hosts that sent while the job was profiled count, so that nobody adds bytes to another's job later.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from controlplane.model import FiveTuple
from controlplane.reports import HostAddress

ROLLBACK_EVERY_NS = 1800 * 10**9
SLACK_ITERATIONS = 2
"""Iterations that may be under way, or told of late."""
LOG_INTERVALS = 4
"""The test goes over so many of the job's steps, where its log tells only every so many iterations."""
IN_A_ROW = 2
"""Readings that must agree before a verdict changes."""
MAX_PROFILE = 512
"""Readings while a job is profiled that are kept at most."""
PARTS = 32
"""Readings that the test goes over are about so many, however slow the job is."""
MIN_BYTES = 65536
"""A job that sends less in an iteration is not checked: what it sends then is none of its collectives."""
MIN_SPAN_NS = 200_000_000
"""A reference goes over so long at least: a reading is not done in no time."""

Bytes = Mapping[HostAddress, int]
"""Of one job, by the address that sent them."""


class Tally:
    """Adds up what switches counted, by job and source, over entries that come and go and start from 0."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, FiveTuple], int] = {}
        self._totals: dict[str, dict[HostAddress, int]] = {}

    def observe(self, switch: str, counts: Mapping[FiveTuple, int], owners: Mapping[FiveTuple, str]) -> None:
        """Take in flow counters of ``switch``, bytes; ``owners``: jobs of the flows that are counted."""
        for flow, count in counts.items():
            if (job := owners.get(flow)) is None:
                continue
            before = self._last.get((switch, flow), 0)
            new = count - before if count >= before else count
            of_job = self._totals.setdefault(job, {})
            of_job[flow.source] = of_job.get(flow.source, 0) + new
            self._last[switch, flow] = count

    def keep(self, flows: Collection[tuple[str, FiveTuple]], jobs: Collection[str]) -> None:
        """Forget all other flows, given with the switch that counts them, and all other jobs."""
        for gone in self._last.keys() - set(flows):
            del self._last[gone]
        for job in self._totals.keys() - set(jobs):
            del self._totals[job]

    def of(self, job: str) -> Bytes:
        """Return what was counted of ``job`` so far."""
        return dict(self._totals.get(job, {}))


class Sample(NamedTuple):
    """A job at one reading."""

    now_ns: int
    done: int
    """Iterations told."""
    bytes: Bytes


@dataclass(frozen=True, slots=True)
class Reference:
    """A job alone at full rate."""

    iteration_ns: float
    bytes_per_iteration: float
    sources: frozenset[HostAddress]
    step: int
    """Most iterations told at once."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of a job's word."""

    checked: bool = False
    """There is a reference to hold it against."""
    flagged: str = ""
    """Why its report is not used; empty: nothing speaks against it."""
    untold: int = 0
    """Iterations to be added to what it told."""
    iteration_ns: float = 0.0
    """The least that T_ideal can be."""


@dataclass(slots=True)
class _Job:
    profile: list[Sample] = field(default_factory=list)
    reference: Reference | None = None
    window: list[Sample] = field(default_factory=list)
    flagged: str = ""
    since: Sample | None = None
    """Where the iterations that were not told began, while flagged."""
    untold: int = 0
    """Of earlier flags."""
    in_a_row: int = 0
    """Readings that speak against the present verdict."""
    rollback_ns: int | None = None
    verdict: Verdict = field(default_factory=Verdict)


class Plausibility:
    """All jobs' verdicts."""

    def __init__(self, tolerance: float, min_iterations: int) -> None:
        self._tolerance = tolerance
        self._min_iterations = min_iterations
        self._jobs: dict[str, _Job] = {}

    def verdict(self, job: str) -> Verdict:
        """Return what is known of ``job``'s word."""
        state = self._jobs.get(job)
        return state.verdict if state else Verdict()

    def restart(self, job: str) -> None:
        """``job`` began anew: nothing is known of it."""
        self._jobs.pop(job, None)

    def keep(self, jobs: Collection[str]) -> None:
        """Forget all other jobs."""
        for gone in self._jobs.keys() - set(jobs):
            del self._jobs[gone]

    def alone(self, job: str, sample: Sample) -> None:
        """Take in a reading of ``job`` while it is profiled, as it has told of an iteration."""
        profile = self._jobs.setdefault(job, _Job()).profile
        if profile and sample.done < profile[-1].done:
            profile.clear()
        if len(profile) < MAX_PROFILE:
            profile.append(sample)

    def put_off(self, job: str) -> None:
        """``job`` has not been profiled after all."""
        if (state := self._jobs.get(job)) is not None:
            state.profile = []

    def profiled(self, job: str, t_ideal_ns: int, *, stable: bool, window: int) -> None:
        """``job`` has been profiled, with this result; ``window``: iterations that the reference goes over.

        Where too little was read meanwhile, the reference of an earlier time stays.
        """
        state = self._jobs.setdefault(job, _Job())
        profile, state.profile = state.profile, []
        found = _fastest(profile, window)
        if found is None:
            return
        iteration_ns, rate, sources = found
        used_ns = t_ideal_ns if stable else max(t_ideal_ns, iteration_ns)
        if rate * used_ns < MIN_BYTES:
            return
        step = max(after.done - before.done for before, after in pairwise(profile))
        state.reference = Reference(used_ns, rate * used_ns, sources, step)
        state.window.clear()
        state.in_a_row = 0
        if state.since is not None:  # its bytes are worth another number of iterations from now on
            state.untold, state.since = state.verdict.untold, None
        self._settle(state, state.reference, state.untold)

    def check(self, job: str, sample: Sample) -> None:
        """Take in a reading of ``job`` in ordinary times."""
        state = self._jobs.get(job)
        if state is None or state.reference is None:
            return
        reference, window = state.reference, state.window
        if window and sample.done < window[-1].done - SLACK_ITERATIONS:
            last_ns = state.rollback_ns
            if last_ns is None or sample.now_ns - last_ns >= ROLLBACK_EVERY_NS:
                state.rollback_ns = sample.now_ns
                window.clear()
        least = max(self._min_iterations, LOG_INTERVALS * reference.step)
        if len(window) > 1 and _counted(reference, window[-2], sample) < least / PARTS:
            window[-1] = sample
        else:
            window.append(sample)
        while len(window) > 2 and _counted(reference, window[1], sample) >= least:
            del window[0]
        counted = _counted(reference, window[0], sample)
        if counted >= least:
            self._judge(state, window[0], sample, counted)
        untold = state.untold
        if state.since is not None:
            more = _counted(reference, state.since, sample) - (sample.done - state.since.done)
            untold += max(round(more), 0)
        elif state.flagged:
            state.since = sample
        self._settle(state, reference, untold)

    def _judge(self, state: _Job, first: Sample, last: Sample, counted: float) -> None:
        """Change the verdict where the last readings agree that it must."""
        told = last.done - first.done
        allowed = self._tolerance * counted / (2 if state.flagged else 1) + SLACK_ITERATIONS
        suspicious = counted - told > allowed
        state.in_a_row = state.in_a_row + 1 if suspicious != bool(state.flagged) else 0
        turned = state.in_a_row >= IN_A_ROW
        if turned:
            state.in_a_row = 0
            state.since = first if suspicious else None
            if not suspicious:
                state.untold, state.flagged = state.verdict.untold, ""
        if suspicious and (turned or state.flagged):
            state.flagged = f"it told of {told} iterations while it sent the bytes of {counted:.0f}"

    @staticmethod
    def _settle(state: _Job, reference: Reference, untold: int) -> None:
        state.verdict = Verdict(True, state.flagged, untold, reference.iteration_ns)


def _counted(reference: Reference, first: Sample, last: Sample) -> float:
    """Return the iterations that the bytes from ``first`` to ``last`` are worth."""
    return _sent(first, last, reference.sources) / reference.bytes_per_iteration


def _sent(first: Sample, last: Sample, sources: Collection[HostAddress]) -> int:
    return sum(last.bytes.get(source, 0) - first.bytes.get(source, 0) for source in sources)


def _fastest(profile: list[Sample], window: int) -> tuple[float, float, frozenset[HostAddress]] | None:
    """Return the least time of an iteration and the most bytes a nanosecond, and who sent.

    Over ``window`` iterations each, or one less where the profiling began with the first of them. None where
    too few iterations were read.
    """
    spans = _spans(profile, window) or _spans(profile, window - 1)
    if not spans:
        return None
    first, last = profile[0], profile[-1]
    sources = frozenset(source for source, sent in last.bytes.items() if sent > first.bytes.get(source, 0))
    took = [last.now_ns - first.now_ns for first, last in spans]
    rate = max(_sent(*span, sources) / ns for span, ns in zip(spans, took, strict=True))
    iteration_ns = min(ns / (last.done - first.done) for (first, last), ns in zip(spans, took, strict=True))
    return iteration_ns, rate, sources


def _spans(profile: list[Sample], window: int) -> list[tuple[Sample, Sample]]:
    """Return the shortest pair of readings from each one on that has ``window`` iterations between."""
    spans: list[tuple[Sample, Sample]] = []
    for index, first in enumerate(profile):
        for last in profile[index + 1 :]:
            if last.done - first.done >= window and last.now_ns - first.now_ns >= MIN_SPAN_NS:
                spans.append((first, last))
                break
    return spans
