"""Whether what a job says of its progress can be true, by what the switches counted. Pure: told the time.

A job sends the same bytes in every iteration. So what its flows' entries have counted, divided by the bytes
of an iteration, is what it has done, whatever its log says. Who tells of fewer iterations than that, to look
starved, is found out. Where it cannot be sure, it flags nobody.

- *Reference.* While a job is profiled it runs alone at full rate. Its counters are read as it tells of
  iterations, and the fastest ``window`` of them (so that warm-up, a checkpoint or an evaluation between does
  not count) give its byte rate by our clock. That times T_ideal is the bytes of an iteration: what a job says
  of T_ideal and what it counts are held against each other, and neither can be lowered alone. Where its
  iterations were not stable, T_ideal is no shorter than their time by our clock. It goes for the flows that
  were there all the while, and for no longer than they are and than T_ideal is what was found then.
- *Worth.* Each source's bytes are worth a number of iterations; the job's are worth the median of these,
  each weighted by what that source sent while the job was profiled. So who sends little in a job's name then,
  and much later, changes nothing.
- *Test.* Later the counters are read now and then. Over the last ``min_iterations`` by the bytes, or four
  times what its log tells at once if that is more, the bytes may be worth ``tolerance`` of them more than the
  job told, and two. Twice in a row beyond that, it is flagged; twice in a row within half of it, it is not
  any more.
- *What follows.* The iterations that the bytes were worth and the job did not tell are added to its count. So
  R is never below what the job says: counters take a job's priority, and never give it one. What was added
  stays, so that a job which lies now and then gains little; a new reference halves it once the flag is gone.
- *Appeal.* An honest job's iterations may have grown (a larger batch). So who is flagged is profiled again
  at its next turn, once for each flag. Its rate then, alone, times T_ideal, is more bytes than before where
  its iterations have grown, and as many as before where it lies: telling half of them makes the rate no
  greater, and telling twice their time makes T_ideal greater, and so R. If by that it left nothing untold,
  the flag is gone, and so is what was added.
- A count that goes back (a rollback to a checkpoint, and those bytes are sent anew) is nothing untold: what
  was sent between the two readings is left out, and up to as much as it fell by counts as told before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from controlplane.model import FiveTuple
from controlplane.reports import HostAddress
from controlplane.tally import Bytes

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


class Sample(NamedTuple):
    """A job at one reading."""

    now_ns: int
    done: int
    """Iterations told."""
    bytes: Bytes


@dataclass(frozen=True, slots=True)
class Reference:
    """A job alone at full rate."""

    t_ideal_ns: int
    """What its profiling found."""
    iteration_ns: float
    """The least that T_ideal can be."""
    flows: frozenset[FiveTuple]
    volumes: Mapping[HostAddress, float]
    """Bytes of an iteration, by source."""
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
    """The least that T_ideal can be, ..."""
    t_ideal_ns: int | None = None
    """... where this is what the profiling found."""


class _Point(NamedTuple):
    """How far a job is since its reference, what lies around rollbacks left out."""

    told: int
    sent: Counter[HostAddress]
    """Bytes, by source."""


_START = _Point(0, Counter())


@dataclass(slots=True)
class _Job:
    profile: list[Sample] = field(default_factory=list)
    reference: Reference | None = None
    step: int = 0
    """Most iterations told at once, so far."""
    last: Sample | None = None
    now: _Point = _START
    """Where it is at ``last``."""
    risen: _Point = _START
    """Where it last told of any iteration."""
    window: list[_Point] = field(default_factory=list)
    flagged: str = ""
    since: _Point | None = None
    """Where the iterations that were not told began, while flagged."""
    untold: int = 0
    """Of earlier flags."""
    in_a_row: int = 0
    """Readings that speak against the present verdict."""
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

        Where too little was read meanwhile there is no reference: one of an earlier time is void. Where there
        is one, a job that was flagged is judged by it anew, from where that began.
        """
        state = self._jobs.setdefault(job, _Job())
        profile, state.profile = state.profile, []
        reference = _reference(profile, t_ideal_ns, stable=stable, window=window)
        flagged, since, now, earlier = state.flagged, state.since, state.now, state.untold
        self.void(job)
        if reference is None:
            return
        state.reference, state.step = reference, reference.step
        if since is not None and not self._suspicious(reference, since, now, flagged=True):
            state.untold = earlier  # its iterations have grown: that was all
        elif flagged:  # until the new reference says otherwise
            state.flagged, state.since = flagged, _START
        if not state.flagged:
            state.untold //= 2
        self._settle(state, state.untold)

    def void(self, job: str) -> None:
        """Forget what ``job`` sends in an iteration: it is not checked until it is profiled."""
        state = self._jobs.get(job)
        if state is None or state.reference is None:
            return
        state.reference = None
        state.last, state.now, state.risen = None, _START, _START
        state.window.clear()
        state.untold, state.in_a_row = state.verdict.untold, 0
        state.flagged, state.since = "", None
        self._settle(state, state.untold)

    def check(self, job: str, sample: Sample) -> bool:
        """Take in a reading of ``job`` in ordinary times. Return whether its reference holds, if it has any.

        Where more than half of what the reference goes for is gone, it does not, and is void.
        """
        state = self._jobs.get(job)
        if state is None or (reference := state.reference) is None:
            return True
        if 2 * len(reference.flows & sample.bytes.keys()) < len(reference.flows):
            self.void(job)
            return False
        last, state.last = state.last, sample
        told = 0 if last is None else sample.done - last.done
        if told < -SLACK_ITERATIONS:
            self._roll_back(state, -told)
            return True
        point = _Point(state.now.told + told, state.now.sent + _sent(last or sample, sample, reference.flows))
        if told > 0 or last is None:
            if last is not None and state.risen.told == state.now.told and state.risen is not state.now:
                # After readings without a word: so much its log tells at once, as far as it has sent it.
                worth = round(_worth(reference, state.risen, point)) + SLACK_ITERATIONS
                state.step = max(state.step, min(told, worth))
            state.risen = point
        state.now = point
        window = state.window
        least = max(self._min_iterations, LOG_INTERVALS * state.step)
        if len(window) > 1 and _worth(reference, window[-2], point) < least / PARTS:
            window[-1] = point
        else:
            window.append(point)
        while len(window) > 2 and _worth(reference, window[1], point) >= least:
            del window[0]
        counted = _worth(reference, window[0], point)
        if counted >= least:
            self._judge(state, window[0], point, counted)
        if (since := state.since) is not None and point is state.risen:
            enough = _worth(reference, since, point) >= self._min_iterations
            if enough and not _untold(state, point):  # it told of all of it after all
                state.flagged, state.since, state.in_a_row = "", None, 0
        self._settle(state, state.untold + _untold(state, point))
        return True

    def _roll_back(self, state: _Job, fall: int) -> None:
        """Take it that what was not told before a rollback was told, up to as much as the count fell by.

        For who went back over more than it had told, or withdrew what it had never done, told of that too.
        """
        before = [*state.window[:1], *([state.since] if state.since else [])]
        missing = max((_behind(state.reference, point, state.now) for point in before), default=0.0)
        told = min(fall, max(round(missing), 0))
        state.now = state.risen = _Point(state.now.told + told, state.now.sent)
        self._settle(state, state.untold + _untold(state, state.now))

    def _judge(self, state: _Job, first: _Point, last: _Point, counted: float) -> None:
        """Change the verdict where the last readings agree that it must."""
        assert state.reference is not None
        told = _told(first, last)
        suspicious = self._suspicious(state.reference, first, last, flagged=bool(state.flagged))
        state.in_a_row = state.in_a_row + 1 if suspicious != bool(state.flagged) else 0
        turned = state.in_a_row >= IN_A_ROW
        if turned:
            state.in_a_row = 0
            if not suspicious:
                # As it was when it last told of any: its next line may tell of what it has sent since.
                state.untold, state.flagged = state.untold + _untold(state, state.risen), ""
            state.since = first if suspicious else None
        if suspicious and (turned or state.flagged):
            state.flagged = f"it told of {told} iterations while it sent the bytes of {counted:.0f}"

    def _suspicious(self, reference: Reference, first: _Point, last: _Point, *, flagged: bool) -> bool:
        """Say whether more is untold between than may be; of who is ``flagged``, half as much may be."""
        allowed = self._tolerance * _worth(reference, first, last) / (2 if flagged else 1) + SLACK_ITERATIONS
        return _behind(reference, first, last) > allowed

    @staticmethod
    def _settle(state: _Job, untold: int) -> None:
        if state.reference is None:
            state.verdict = Verdict(untold=untold)
        else:
            reference = state.reference
            state.verdict = Verdict(True, state.flagged, untold, reference.iteration_ns, reference.t_ideal_ns)


def _untold(state: _Job, point: _Point) -> int:
    """Return what was not told from ``since`` to ``point``: no more than what its bytes are worth."""
    if state.since is None or state.reference is None:
        return 0
    return max(round(_behind(state.reference, state.since, point)), 0)


def _behind(reference: Reference | None, first: _Point, last: _Point) -> float:
    return _worth(reference, first, last) - _told(first, last) if reference else 0.0


def _told(first: _Point, last: _Point) -> int:
    return max(last.told - first.told, 0)


def _worth(reference: Reference, first: _Point, last: _Point) -> float:
    """Return the iterations that the bytes between are worth: the lower weighted median of the sources."""
    ratios = sorted(
        ((last.sent[source] - first.sent[source]) / volume, volume)
        for source, volume in reference.volumes.items()
    )
    left = sum(reference.volumes.values()) / 2
    for ratio, volume in ratios:
        left -= volume
        if left <= 0:
            return ratio
    return ratios[-1][0]


def _sent(first: Sample, last: Sample, flows: Collection[FiveTuple]) -> Counter[HostAddress]:
    """Return the bytes of ``flows`` by source; those that were not read both times have sent none."""
    sent: Counter[HostAddress] = Counter()
    for flow in flows:
        after = last.bytes.get(flow, 0)
        sent[flow.source] += max(after - first.bytes.get(flow, after), 0)
    return sent


def _reference(profile: list[Sample], t_ideal_ns: int, *, stable: bool, window: int) -> Reference | None:
    """Return what the readings of a profiling tell; None where they are too few, or too little was sent.

    Over ``window`` iterations each, or one less where the profiling began with the first of them.
    """
    spans = _spans(profile, window, t_ideal_ns) or _spans(profile, window - 1, t_ideal_ns)
    if not spans and _contradicts_itself(profile):
        spans = [(profile[0], profile[-1])]
    if not spans:
        return None
    first, last = profile[0], profile[-1]
    flows = frozenset(flow for flow, sent in last.bytes.items() if sent > first.bytes.get(flow, sent))
    iteration_ns = min((end.now_ns - begin.now_ns) / max(end.done - begin.done, 1) for begin, end in spans)
    used_ns = t_ideal_ns if stable else max(t_ideal_ns, iteration_ns)
    # Each source by itself: what another sends while it warms up, say, makes its own bytes no fewer.
    volumes: dict[HostAddress, float] = {}
    for begin, end in spans:
        for source, sent in _sent(begin, end, flows).items():
            volume = sent * used_ns / (end.now_ns - begin.now_ns)
            volumes[source] = max(volume, volumes.get(source, 0.0))
    total = sum(volumes.values())
    if total < MIN_BYTES:
        return None
    step = max(
        min(after.done - before.done, round(_sent(before, after, flows).total() / total) + SLACK_ITERATIONS)
        for before, after in pairwise(profile)
    )
    volumes = {source: volume for source, volume in volumes.items() if volume}
    return Reference(t_ideal_ns, used_ns, flows, volumes, step)


def _contradicts_itself(profile: list[Sample]) -> bool:
    """Say whether the job told how long iterations took, at each reading, but of less than half as many."""
    readings = len(profile) - 1
    return (
        readings >= 2
        and profile[-1].now_ns - profile[0].now_ns >= MIN_SPAN_NS
        and 2 * (profile[-1].done - profile[0].done) <= readings
    )


def _spans(profile: list[Sample], iterations: int, t_ideal_ns: int) -> list[tuple[Sample, Sample]]:
    """Return the shortest pair of readings from each one on that has so many ``iterations`` between.

    And at least half of the time that these take: so long a burst is not.
    """
    least_ns = max(MIN_SPAN_NS, iterations * t_ideal_ns // 2)
    spans: list[tuple[Sample, Sample]] = []
    for index, first in enumerate(profile):
        for last in profile[index + 1 :]:
            if last.done - first.done >= iterations and last.now_ns - first.now_ns >= least_ns:
                spans.append((first, last))
                break
    return spans
