"""Progress of jobs: from what hosts report to N, t0 and the normalized progress rate R.

R = N * T_ideal / (t - t0) in [0, 1] (LEVELLER; the inverse of a job's slowdown). A job runs on several hosts
in step: N is the most that any of them counted and t0 the first start among them. The controller stamps
arrivals with its own clock and takes only differences from an agent's, so that clocks need not agree. What
cannot be true (an iteration in no time, an end before the start) is refused and changes nothing. A count
that goes back is a rollback to a checkpoint: that work is to be done again. Any host can speak of any job;
once a job has been profiled, those that told of it then are asked alone (`Progress.pin`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from controlplane.measured import slack_ns
from controlplane.reports import MAX_JOBS, HostReport, JobReport, Timing

MIN_ITERATION_NS = 100_000
"""No training iteration is shorter than this."""
MAX_AGE_NS = 10 * 366 * 86400 * 10**9
"""No job is older than this."""
KEEP_OVER = 64
"""Most jobs that are over and remembered."""
SAME_START_NS = 5 * 10**9
"""Starts that differ by no more are taken for the same start."""
RESTART_NS = 150 * 10**9
"""A job that is over may go on, from its old start, within so long: agents give a launcher two minutes."""


def rate(iterations: int, t_ideal_ns: float, elapsed_ns: float) -> float:
    """Return R, clamped to [0, 1]; before any time has passed it is 1, and with no iteration done 0."""
    if iterations <= 0:
        return 0.0
    if elapsed_ns <= 0:
        return 1.0
    return min(iterations * t_ideal_ns / elapsed_ns, 1.0)


class Iteration(NamedTuple):
    """A completed iteration, on the controller's clock."""

    end_ns: int
    duration_ns: int


@dataclass(frozen=True, slots=True)
class JobProgress:
    """A job, merged over its hosts. Times are nanoseconds of the controller's clock."""

    id: str
    t0_ns: int
    iterations: int
    has_source: bool
    """Some host of it has a log to count iterations in."""
    silent: bool
    """Every host of it that has one has stopped reporting."""
    heard_ns: int
    """The last report about it."""
    fastest_ns: int | None
    """Its fastest iteration so far."""
    hosts: tuple[str, ...]
    timing: Timing | None = None
    """What an iteration is made of, as the host with its log measures it."""
    brief_flows: int = 0
    """Connections between its hosts that were gone before they were listed."""
    communicators: int = 0
    """NCCL's, on the host that knows of most."""
    log_format: str = ""
    """The format of the log that is read; empty where none is."""
    no_source: bool = False
    """Every host of it says that there is nothing to read its progress from."""
    estimated: int = 0
    """Iterations believed completed since the log's last line; R counts them."""
    estimated_error: int = 0
    """By how many ``estimated`` may be wrong."""
    hung: bool = False
    """It runs, and has completed no iteration for many times an iteration's time."""
    world_size: int = 0
    """Its ranks; 0: not known."""
    slack_ns: int = 0
    """For how long each of its bursts may wait, as far as that is sure: see `controlplane.measured`."""
    tellers: tuple[str, ...] = ()
    """The hosts whose word all this is: those that it is pinned to; else those with its log, or all."""
    pinned: bool = False
    """Only the hosts that it is pinned to were asked."""

    @property
    def done(self) -> int:
        """Iterations, those that are only estimated included."""
        return self.iterations + self.estimated

    def rate(self, t_ideal_ns: float | None, now_ns: int, *, new: bool, untold: int = 0) -> float:
        """Return R at ``now_ns``; while the job is silent, R as it was when it was last heard.

        ``untold``: iterations that it has done by the switches' counters, on top of those it told of.

        Without ``t_ideal_ns`` the job's fastest iteration stands for it. A job of which nothing can be told
        (no log, or iterations but no duration yet) counts as R = 1: it goes last, for hiding progress must
        not pay. But a ``new`` one has R = 0: behind others it might never write its log's first line. That is
        not for one whose hosts all say that there is no progress source.
        """
        if self.iterations == 0 and (self.has_source or (new and not self.no_source)):
            return 0.0
        ideal = self.fastest_ns if t_ideal_ns is None else t_ideal_ns
        if ideal is None or not self.has_source:
            return 1.0
        return rate(self.done + untold, ideal, (self.heard_ns if self.silent else now_ns) - self.t0_ns)


class Over(NamedTuple):
    """A job that is over on one host."""

    host: str
    iterations: int
    died: bool
    """It was in the middle; else it had ended."""
    over_ns: int
    """On the controller's clock."""


@dataclass(slots=True)
class _OnHost:
    """A job as one host sees it."""

    started_ns: int
    t0_ns: int
    iterations: int = 0
    has_source: bool = False
    fastest_ns: int | None = None
    timing: Timing | None = None
    log_format: str = ""
    no_source: bool = False
    estimated: int = 0
    estimated_error: int = 0
    hung: bool = False
    brief_flows: int = 0
    communicators: int = 0
    world_size: int = 0
    slack_ns: int = 0


@dataclass(slots=True)
class _Host:
    heard_ns: int
    monotonic_ns: int = 0
    jobs: dict[str, _OnHost] = field(default_factory=dict)
    gone: dict[str, tuple[int, int]] = field(default_factory=dict)
    """t0 of the jobs that were here, and when they went."""

    def drop(self, job: str, now_ns: int) -> bool:
        """Drop a job; return whether it was there."""
        if (state := self.jobs.pop(job, None)) is None:
            return False
        self.gone = {name: went for name, went in self.gone.items() if now_ns - went[1] <= RESTART_NS}
        if len(self.gone) < MAX_JOBS:
            self.gone[job] = state.t0_ns, now_ns
        return True

    def earliest_ns(self, job: str, now_ns: int, heard_ns: int | None) -> int | None:
        """Return the earliest start that is believed of ``job``; None: any.

        One that was not here when the host was last heard, at ``heard_ns``, has not run for longer, whatever
        its host says; one that was here has not begun before what was said then.
        """
        if job in self.jobs:
            return self.jobs[job].t0_ns
        if job in self.gone and now_ns - self.gone[job][1] <= RESTART_NS:
            return self.gone[job][0]
        return None if heard_ns is None else heard_ns - SAME_START_NS


@dataclass(frozen=True, slots=True)
class Observed:
    """What came of one report."""

    iterations: Mapping[str, Sequence[Iteration]]
    """Job -> iterations completed since the last report; of one host per job only."""
    refused: Sequence[str]
    """Why parts of it were not believed."""
    news: bool
    """A job came or went: worth a new ranking at once. Iterations wait for the next tau."""
    believed: bool = True
    """False: nothing in the report can be used."""


class Progress:
    """All hosts' reports, merged. Pure but for its memory: the caller tells the time."""

    def __init__(self, silent_after_ns: int, forget_after_ns: int) -> None:
        self._silent_after_ns = silent_after_ns
        self._forget_after_ns = forget_after_ns
        self._hosts: dict[str, _Host] = {}
        self._pins: dict[str, frozenset[str]] = {}
        self.over: dict[str, Over] = {}
        """The last jobs that are over, by id, the latest last. One that runs again is none of them."""

    def observe(self, host: str, report: HostReport, arrival_ns: int) -> Observed:
        """Take in a report of ``host`` that arrived at ``arrival_ns``."""
        last_heard_ns = self._hosts[host].heard_ns if host in self._hosts else None
        known = self._hosts.setdefault(host, _Host(arrival_ns))
        if report.monotonic_ns < known.monotonic_ns and not report.full:
            return Observed({}, ["the agent's clock went back"], news=False, believed=False)
        known.heard_ns, known.monotonic_ns = arrival_ns, report.monotonic_ns
        iterations: dict[str, list[Iteration]] = {}
        refused: list[str] = []
        news = False
        for job in report.jobs:
            if not job.running:
                if known.drop(job.job, arrival_ns):
                    news = True
                    self._note_over(host, job, arrival_ns)
                continue
            problem = self._refuse(known, job, report)
            if problem:
                refused.append(f"job {job.job!r}: {problem}")
                continue
            before = known.jobs.get(job.job)
            earliest_ns = known.earliest_ns(job.job, arrival_ns, last_heard_ns)
            known.jobs[job.job] = _merge(before, job, arrival_ns - report.monotonic_ns, earliest_ns)
            if before is None:
                news = True
                self.over.pop(job.job, None)
            if job.iteration_ns and self._source_of(job.job, arrival_ns) == host:
                iterations[job.job] = _stamp(job, arrival_ns - report.monotonic_ns)
        if report.full:
            for gone in known.jobs.keys() - {job.job for job in report.jobs}:
                known.drop(gone, arrival_ns)
                news = True
        return Observed(iterations, refused, news)

    def pin(self, job: str, hosts: Collection[str]) -> None:
        """Ask only ``hosts`` of ``job`` from now on, while any of them has its log; none: whoever has it."""
        if hosts:
            self._pins[job] = frozenset(hosts)
        else:
            self._pins.pop(job, None)

    def pins(self, job: str) -> frozenset[str]:
        """Return the hosts that ``job`` is pinned to; none: it is not."""
        return self._pins.get(job, frozenset())

    def forget(self, host: str) -> None:
        """Drop all that ``host`` reported."""
        self._hosts.pop(host, None)

    def forgotten(self, now_ns: int) -> list[str]:
        """Drop the hosts that have been silent for too long, and name them."""
        gone = [name for name, host in self._hosts.items() if now_ns - host.heard_ns > self._forget_after_ns]
        for name in gone:
            self.forget(name)
        return gone

    def jobs(self, now_ns: int) -> dict[str, JobProgress]:
        """Return every job that some host has, by id, in order of id."""
        on_hosts: dict[str, list[tuple[str, _Host, _OnHost]]] = {}
        for name, host in sorted(self._hosts.items()):
            for job, state in host.jobs.items():
                on_hosts.setdefault(job, []).append((name, host, state))
        self._pins = {job: pins for job, pins in self._pins.items() if job in on_hosts}
        return {job: self._merged(job, on_hosts[job], now_ns) for job in sorted(on_hosts)}

    def _merged(self, job: str, everywhere: Sequence[tuple[str, _Host, _OnHost]], now_ns: int) -> JobProgress:
        pins = self.pins(job)
        pinned = any(name in pins and state.has_source for name, _, state in everywhere)
        hosts = [entry for entry in everywhere if entry[0] in pins] if pinned else everywhere
        sources = [entry for entry in hosts if entry[2].has_source]
        furthest = max((state for _, _, state in sources or hosts), key=lambda state: state.iterations)
        heard_ns = max(host.heard_ns for _, host, _ in sources or hosts)
        return JobProgress(
            id=job,
            t0_ns=min(state.t0_ns for _, _, state in hosts),
            iterations=max(state.iterations for _, _, state in hosts),
            has_source=bool(sources),
            silent=now_ns - heard_ns > self._silent_after_ns,
            heard_ns=heard_ns,
            fastest_ns=min((s.fastest_ns for _, _, s in sources if s.fastest_ns is not None), default=None),
            hosts=tuple(name for name, _, _ in everywhere),
            timing=next((state.timing for _, _, state in sources if state.timing), None),
            brief_flows=sum(state.brief_flows for _, _, state in everywhere),
            communicators=max(state.communicators for _, _, state in everywhere),
            log_format=furthest.log_format,
            no_source=all(state.no_source for _, _, state in hosts),
            estimated=furthest.estimated,
            estimated_error=furthest.estimated_error,
            hung=furthest.hung,
            world_size=max(state.world_size for _, _, state in hosts),
            slack_ns=next((state.slack_ns for _, _, state in sources if state.timing), 0),
            tellers=tuple(name for name, _, _ in sources or hosts),
            pinned=pinned,
        )

    def _note_over(self, host: str, job: JobReport, now_ns: int) -> None:
        """Remember how a job ended; a host where it died tells more than one where it only ended."""
        before = self.over.pop(job.job, None)
        iterations = max(job.iterations, before.iterations if before else 0)
        died = job.died or (before is not None and before.died)
        where = before.host if before is not None and before.died else host
        self.over[job.job] = Over(where, iterations, died, now_ns)
        while len(self.over) > KEEP_OVER:
            del self.over[next(iter(self.over))]

    def _source_of(self, job: str, now_ns: int) -> str | None:
        """Name the one host whose durations count for ``job``: the first with its log that is not silent.

        Of those that it is pinned to, where any has its log.
        """
        having = {
            name: host for name, host in self._hosts.items() if job in host.jobs and host.jobs[job].has_source
        }
        named = having.keys() & self.pins(job) or having.keys()
        return min(
            (name for name in named if now_ns - having[name].heard_ns <= self._silent_after_ns), default=None
        )

    @staticmethod
    def _refuse(host: _Host, job: JobReport, report: HostReport) -> str | None:
        """Return why the host's word on ``job`` cannot be true; None where it can."""
        age_ns = report.monotonic_ns - job.started_ns
        if age_ns < 0:
            return "it started in the future"
        if age_ns > MAX_AGE_NS:
            return f"it has run for {age_ns} ns"
        if (done := job.iterations + job.estimated) * MIN_ITERATION_NS > age_ns:
            return f"{done} iterations in {age_ns} ns"
        if job.last_iteration_ns and not job.started_ns <= job.last_iteration_ns <= report.monotonic_ns:
            return "its last iteration ended before it started or in the future"
        if any(duration < MIN_ITERATION_NS for duration in job.iteration_ns):
            return "an iteration took no time"
        if sum(job.iteration_ns) > age_ns + SAME_START_NS:
            return "its iterations took longer than it has run"
        before = host.jobs.get(job.job)
        if before is None:
            return "more jobs than one host may have" if len(host.jobs) >= MAX_JOBS else None
        if job.started_ns < before.started_ns - SAME_START_NS and not report.full:
            return "its start went back"
        return None


def _merge(before: _OnHost | None, job: JobReport, offset_ns: int, earliest_ns: int | None) -> _OnHost:
    """Update a host's view of a job; ``offset_ns`` turns the agent's clock into the controller's.

    ``earliest_ns``: see `_Host.earliest_ns`.
    """
    if before is None or abs(job.started_ns - before.started_ns) > SAME_START_NS:
        t0_ns = job.started_ns + offset_ns
        before = _OnHost(job.started_ns, t0_ns if earliest_ns is None else max(t0_ns, earliest_ns))
    durations = list(job.iteration_ns)
    if before.fastest_ns is not None:
        durations.append(before.fastest_ns)
    return _OnHost(
        started_ns=before.started_ns,
        t0_ns=before.t0_ns,
        iterations=job.iterations,
        has_source=job.has_source,
        fastest_ns=min(durations, default=None),
        timing=job.timing,
        log_format=job.log_format,
        no_source=job.source == "none",
        estimated=job.estimated,
        estimated_error=job.estimated_error,
        hung=job.hung,
        brief_flows=job.brief_flows,
        communicators=job.communicators,
        world_size=job.world_size,
        slack_ns=slack_ns(job.timing, before.slack_ns),
    )


def _stamp(job: JobReport, offset_ns: int) -> list[Iteration]:
    """Place the reported iterations, which followed one another, on the controller's clock."""
    end_ns = job.last_iteration_ns + offset_ns
    stamped: list[Iteration] = []
    for duration_ns in reversed(job.iteration_ns):
        stamped.append(Iteration(end_ns, duration_ns))
        end_ns -= duration_ns
    return stamped[::-1]
