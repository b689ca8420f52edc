"""The controller without its sockets: everything between a report and what the switches should hold.

`Engine` joins the pure parts: progress and flows from reports, paths from probes, groups, profiling, the
policy, and the state wanted of each switch. It does no I/O, reads no clock and holds no task, so that a test
can drive it through any history.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from controlplane.changes import InForce, JobChange, LevelChange
from controlplane.config import Config
from controlplane.counting import Counting, Readings
from controlplane.desired import Builder
from controlplane.flows import Flows
from controlplane.groups import GroupKey, GroupTable, Placement
from controlplane.int_report import IntReport
from controlplane.measured import shares, slack_us
from controlplane.model import FiveTuple, Job
from controlplane.origins import Origins
from controlplane.paths import PathError, Paths, Probe
from controlplane.plausibility import Verdict
from controlplane.policies import POLICIES, Incidence
from controlplane.policies.contention import job_components
from controlplane.profiling import Profiler, State
from controlplane.progress import JobProgress, Over, Progress
from controlplane.ranking import rank, reasons
from controlplane.reports import HostReport
from controlplane.runs import Run, Runs, hosts_to_ask
from controlplane.step import RankedJob, Step
from controlplane.store import Saved, SavedJob

SETTLE_NS = 5 * 10**9
"""A restarted controller leaves the switches as they are until it has found the flows it knew, or so long."""
_FREE_EVERY_NS = 10**9
"""How often numbers that are due to be free are looked for."""
_REPROBE_NS = 10**9
"""A changed path makes all paths suspect, but no more often than this."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many groups and slots the data plane has room for."""

    groups: int
    slots: int


class Engine:
    """Reports and probes in, `Step` out.

    ``now_ns`` is always the controller's monotonic clock; ``unix_offset_ns`` added to it gives Unix time.
    """

    def __init__(
        self, config: Config, sizes: Sizes, saved: Saved, random: Random, now_ns: int, unix_offset_ns: int
    ) -> None:
        times = config.controller
        forget_ns = round(times.forget_after_s * 1e9)
        self._config = config
        self._unix_offset_ns = unix_offset_ns
        self._progress = Progress(round(times.silent_after_s * 1e9), forget_ns)
        self._flows = Flows(times.min_flow_bytes)
        self._paths = Paths(
            {switch.node_id: switch.name for switch in config.switches},
            behind=config.behind(),
            retry_s=times.probe_retry_s,
            refresh_s=times.probe_refresh_s,
        )
        self._origins = Origins(config.switches)
        self._groups = GroupTable(sizes.groups, sizes.slots, forget_ns, saved.groups, saved.slots)
        self._profiler = Profiler(
            config.profiling,
            random,
            {job: state.t_ideal_ns for job, state in saved.jobs.items() if state.t_ideal_ns is not None},
        )
        self._profiles = config.policy.profile and config.levels.count > 1
        self._counting = Counting(config)
        self._builder = Builder(config)
        self._saved = saved
        self._runs = Runs(
            {name: Run(job.t0_unix_ns - unix_offset_ns, job.iterations) for name, job in saved.jobs.items()}
        )
        self._held: frozenset[str] = frozenset()
        """The jobs that held the profiling level at the last step."""
        self._placed_since_ns: dict[str, int] = {}
        self._awaited = set(saved.slots)
        self._settled_ns = now_ns + SETTLE_NS if saved.slots else now_ns
        self._reprobed_ns = now_ns
        self._stale = True
        self._placed_ns = now_ns
        self._placement = Placement()
        self._incidence = Incidence(())
        self._components: Sequence[frozenset[str]] = ()
        self._in_force = InForce()
        self.last = Step(now_ns, self._builder.untouched())
        """The last step; before the first, the wish to leave every switch as it is."""

    @property
    def flows(self) -> Flows:
        """The flows that agents report."""
        return self._flows

    @property
    def paths(self) -> Paths:
        """The paths that probes told."""
        return self._paths

    def on_report(self, host: str, report: HostReport, now_ns: int) -> tuple[Sequence[str], bool]:
        """Take in a report. Return why parts of it are not believed, and whether a step should come soon."""
        observed = self._progress.observe(host, report, now_ns)
        if not observed.believed:
            return observed.refused, False
        change = self._flows.observe(host, report)
        self._stale |= change.ranked
        for flow in change.closed:
            self._paths.remove(flow)
        for flow in change.opened:
            self._paths.add(flow)
        measured = False
        for job, iterations in observed.iterations.items():
            if self._profiler.state(job) is State.PROFILING:
                self._counting.told(job, now_ns)
            measured |= self._profiler.observe(job, iterations, now_ns)
        refused = list(observed.refused)
        if change.refused:
            refused.append(f"{change.refused} more flows than one host may have")
        return refused, bool(observed.news or measured or change.opened or change.closed)

    @property
    def changed(self) -> Mapping[str, JobChange]:
        """The last change of every job's levels, by its id."""
        return self._in_force.last

    @property
    def over(self) -> Mapping[str, Over]:
        """The last jobs that are over, by id."""
        return self._progress.over

    def on_probe(self, report: IntReport, now_ns: int) -> bool:
        """Take in a sunk probe. Return whether a step should come soon. PathError: it tells no path."""
        problem = self._origins.refuse(report)
        if problem:
            raise PathError(problem)
        known = self._paths.path(report.flow)
        learnt = self._paths.sunk(report, now_ns / 1e9)
        self._stale |= learnt.changed
        if learnt.changed and known is not None:
            self.suspect_paths(now_ns)
        return learnt.changed

    def on_not_sent(self, host: str, number: int, now_ns: int) -> FiveTuple | None:
        """Retry probe ``number``, which ``host`` could not send; return its flow, if it is the host's."""
        flow = self._paths.asked(number)
        if flow is None or self._flows.known[flow].host != host:
            return None
        return self._paths.not_sent(number, now_ns / 1e9)

    @property
    def counting(self) -> Counting:
        """Which counters of the switches are to be read."""
        return self._counting

    def on_counters(self, readings: Readings, now_ns: int, jobs: Collection[str] | None = None) -> None:
        """Take in the flow counters of some switches, those of the flows of ``jobs`` or of all."""
        done = {
            name: job.done
            for name, job in self._progress.jobs(now_ns).items()
            if job.has_source and not job.silent and job.pinned == bool(self._progress.pins(name))
        }
        self._counting.observe(readings, done, self._profiler, now_ns, jobs)

    def suspect_paths(self, now_ns: int) -> None:
        """Ask for all paths again: the topology may have changed."""
        if now_ns - self._reprobed_ns >= _REPROBE_NS:
            self._reprobed_ns = now_ns
            self._paths.reprobe()

    def probes(self, now_ns: int) -> list[tuple[str, Probe]]:
        """Return the probes to be asked for now, and of which host."""
        return [(self._flows.known[probe.flow].host, probe) for probe in self._paths.due(now_ns / 1e9)]

    def step(self, now_ns: int) -> Step:
        """Rank: what every switch should hold from ``now_ns`` on."""
        forgotten = self._progress.forgotten(now_ns)
        for host in forgotten:
            change = self._flows.forget(host)
            self._stale |= change.ranked
            for flow in change.closed:
                self._paths.remove(flow)
        progress = self._progress.jobs(now_ns)
        self._note_runs(now_ns, progress)
        placement, components = self._place(now_ns, progress)
        settling = self._settling(now_ns, placement)
        profiling = frozenset() if settling else self._profile(now_ns, progress, components)
        jobs = self._ranked(now_ns, progress, profiling, components)
        policy = self._config.policy
        levels = rank(
            POLICIES[policy.name],
            [job.as_ranked for job in jobs.values()],
            self._incidence,
            self._config.levels.count,
            policy.scope,
            components,
            profiling,
        )
        if settling:
            desired = self._builder.untouched()
            changes: list[LevelChange] = []
        else:
            desired = self._builder.build(placement, levels, self._slack_us(jobs, profiling))
            reasons_of = {name: job.reason for name, job in jobs.items()}
            changes = self._in_force.follow(placement.groups, levels, reasons_of, now_ns)
        self.last = Step(now_ns, desired, jobs, placement, levels, changes, forgotten)
        return self.last

    def to_save(self) -> Saved:
        """Return what a restarted controller needs to go on from the last step."""
        if self._awaited:
            return self._saved
        return Saved(
            jobs={
                name: SavedJob(
                    job.progress.t0_ns + self._unix_offset_ns, job.progress.iterations, job.t_ideal_ns
                )
                for name, job in self.last.jobs.items()
            },
            groups=self._groups.group_numbers(),
            slots=self._groups.slot_numbers(),
        )

    def _note_runs(self, now_ns: int, progress: Mapping[str, JobProgress]) -> None:
        """Void what was measured of what a job's id does not stand for any more, even while we were down."""
        turnover = self._runs.follow(progress)
        for name in turnover.strange | turnover.anew:
            self._counting.restart(name)
        for name in turnover.anew:
            self._profiler.restart(name, now_ns)
            self._progress.pin(name, ())
        for name in turnover.altered:
            self._counting.void(name)
        for name in turnover.altered | self._counting.take_again():
            self._profiler.again(name, now_ns)

    def _pin(self, job: JobProgress) -> None:
        """Ask none but the hosts that told of ``job`` while it was profiled from now on."""
        hosts = {flow.source: known.host for flow, known in self._flows.known.items()}
        asked = hosts_to_ask(job, self._progress.pins(job.id), self._counting.sent(job.id), hosts)
        self._progress.pin(job.id, asked)

    def _place(
        self, now_ns: int, progress: Mapping[str, JobProgress]
    ) -> tuple[Placement, Sequence[frozenset[str]]]:
        """Return the placement and the jobs' components: the last ones, unless what they follow from changed.

        So a mere re-ranking costs what the groups cost, however many flows there are.
        """
        to_free = self._groups.any_gone and now_ns - self._placed_ns >= _FREE_EVERY_NS
        if self._stale or to_free or progress.keys() != self.last.jobs.keys():
            placeable: dict[FiveTuple, GroupKey] = {}
            for flow, job in self._flows.ranked():
                path = self._paths.path(flow)
                if path and job in progress:
                    placeable[flow] = job, path
            self._placement = self._groups.place(placeable, now_ns)
            self._incidence = Incidence(self._placement.groups)
            self._components = job_components(progress, self._placement.groups)
            self._placed_since_ns = {
                group.job: self._placed_since_ns.get(group.job, now_ns) for group in self._placement.groups
            }
            self._counting.place(self._placement, progress.keys())
            self._placed_ns, self._stale = now_ns, False
        return self._placement, self._components

    def _profile(
        self, now_ns: int, progress: Mapping[str, JobProgress], components: Sequence[frozenset[str]]
    ) -> frozenset[str]:
        """Let the profiler step; return the jobs that hold the profiling level."""
        if not self._profiles:
            return frozenset()
        ready = {
            name
            for name, job in progress.items()
            if name in self._placed_since_ns
            and not job.silent
            and (job.has_source or (self._is_new(name, now_ns) and not job.no_source))
        }
        given = {name: ns for name in progress if (ns := self._config.t_ideal_ns(name)) is not None}
        self._profiler.step(now_ns, progress, given, ready, components)
        held, self._held = self._held, self._profiler.profiling()
        for name in (held - self._held) & progress.keys():
            if progress[name].has_source and self._profiler.state(name) is State.MEASURED:
                self._pin(progress[name])
        return self._held

    def _is_new(self, job: str, now_ns: int) -> bool:
        """Say whether ``job`` still has time to show its first iteration."""
        return now_ns - self._placed_since_ns.get(job, now_ns) < self._config.profiling.max_s * 1e9

    def _ranked(
        self,
        now_ns: int,
        progress: Mapping[str, JobProgress],
        profiling: frozenset[str],
        components: Sequence[frozenset[str]],
    ) -> dict[str, RankedJob]:
        jobs: dict[str, Job] = {}
        ideal: dict[str, int | None] = {}
        states: dict[str, str] = {}
        notes: dict[str, str] = {}
        verdicts: dict[str, Verdict] = {}
        enforce = self._config.counters.enforce
        for name, job in progress.items():
            verdict = verdicts[name] = self._counting.verdict(name)
            untold = verdict.untold if enforce else 0
            measured_ns = self._profiler.t_ideal_ns(name)
            ideal[name] = self._config.t_ideal_ns(name) if measured_ns is None else measured_ns
            if measured_ns is not None and measured_ns == verdict.t_ideal_ns:
                ideal[name] = max(measured_ns, round(verdict.iteration_ns))
            new = self._is_new(name, now_ns)
            rate = job.rate(ideal[name], now_ns, new=new, untold=untold)
            measured = shares(None if verdict.flagged else job.timing, ideal[name])
            intensity = self._config.intensity(name)
            if not intensity and not self._config.policy.order:
                intensity = measured.intensity(job.world_size)
            jobs[name] = Job(name, rate, job.iterations + untold, intensity, *measured)
            states[name] = self._state(job, new)
            if states[name] == "silent":
                notes[name] = "its hosts have stopped reporting; R stands still"
            elif states[name] == "no progress":
                why = "no progress source" if job.no_source else "its log shows no iteration"
                notes[name] = f"{why}, so it goes last"
            elif verdict.flagged:
                use = "not used" if enforce else "doubtful"
                notes[name] = f"its report is {use}: {verdict.flagged}"
            elif job.hung:
                notes[name] = "its hosts say that it hangs"
            elif ideal[name] is None:
                notes[name] = "T_ideal not measured yet; its fastest iteration stands for it"
        texts = reasons(list(jobs.values()), components, profiling, notes)
        return {
            name: RankedJob(
                job,
                jobs[name],
                ideal[name],
                states[name],
                texts[name],
                self._profiler.confidence(name),
                verdicts[name],
            )
            for name, job in progress.items()
        }

    def _slack_us(self, jobs: Mapping[str, RankedJob], profiling: Collection[str]) -> dict[str, int]:
        """Return the slack of the jobs that have any, where it is to be as measured.

        One that is being profiled has none: it is to be alone. Nor has one whose word is not to be believed.
        """
        if self._config.levels.slack_us != "measured":
            return {}
        return {
            name: slack
            for name, job in jobs.items()
            if not (name in profiling or job.verdict.flagged or job.progress.silent)
            and (slack := slack_us(job.progress.slack_ns, job.t_ideal_ns or job.progress.fastest_ns))
        }

    def _state(self, job: JobProgress, new: bool) -> str:
        if job.silent:
            return "silent"
        if not job.has_source and (job.no_source or not new):
            return "no progress"
        if not self._profiles:
            return "ranked"
        match self._profiler.state(job.id):
            case State.PROFILING:
                return "profiling"
            case State.WAITING:
                return "waiting"
            case _:
                return "ranked"

    def _settling(self, now_ns: int, placement: Placement) -> bool:
        """Say whether a restarted controller still has to find flows that it knew."""
        if self._awaited and (now_ns >= self._settled_ns or self._awaited <= placement.flows.keys()):
            self._awaited = set()
        return bool(self._awaited)
