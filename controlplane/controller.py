"""The running controller: the engine between its sockets, and the loop that turns it.

The loop never waits for a peer. Agents' reports and sunk probes are taken in as they come; every tau, and at
most every ``min_interval`` when something happens, the engine ranks, and each switch whose state should
differ is given its new one in a task of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping

import structlog
from leveller_proto import agent_pb2

from controlplane import overview
from controlplane.agents import AgentServer, Handlers
from controlplane.changes import by_job, log_line
from controlplane.config import Config
from controlplane.counting import PROMPT_NS
from controlplane.engine import Engine, Sizes
from controlplane.int_report import IntReport
from controlplane.metrics import Metrics
from controlplane.model import FiveTuple
from controlplane.paths import INSTRUCTIONS, PathError
from controlplane.refusals import Refusals
from controlplane.reports import HostReport, encode_flow
from controlplane.southbound import Desired, Fabric, Outcome, Result, SwitchError, SwitchStatus
from controlplane.status import html_page, json_page, metrics_page, serve
from controlplane.step import Step
from controlplane.store import Store

_SAVE_EVERY_S = 1.0
_COUNTERS_S = 5.0
"""A switch that takes longer to tell its flow counters is left out."""
_COUNTERS_GAP_S = 0.1
_LOG_REFUSED_EVERY_S = 10.0


class Controller:
    """One controller. `run` is its life; ``listening`` tells once it serves, and where."""

    def __init__(self, config: Config) -> None:
        """Nothing is opened before `run`."""
        self._config = config
        self._program = config.program()
        self._metrics = Metrics()
        self._log = structlog.get_logger("controlplane")
        self._wake = asyncio.Event()
        self._count = asyncio.Event()
        self._being_read: set[str] = set()
        self._flagged: Mapping[str, str] = {}
        self._given: Mapping[str, Desired] = {}
        self._writes: set[asyncio.Task[None]] = set()
        self._saved_s = 0.0
        self._refusals = Refusals()
        self._complained_s: dict[str, float] = {}
        self._shown_jobs: set[str] = set()
        self._left_out: Mapping[str, Mapping[str, int]] = {}
        self._agents = AgentServer(
            config.controller.name,
            Handlers(self._on_report, self._on_probe_sent, self._on_refused),
            report_interval_ns=round(config.controller.silent_after_s * 1e9 / 3),
            tls=config.controller.tls,
        )
        self.listening: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()
        """Addresses for agents and for HTTP, as they really are."""

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until ``stop`` is set. Raises UserError where the store or an address cannot be had."""
        config = self._config.controller
        async with contextlib.AsyncExitStack() as stack:
            self._store = stack.enter_context(Store(config.store))
            self._engine = Engine(
                self._config,
                Sizes(self._program.constants["GROUPS"], self._program.constants["FLOW_SLOTS"] - 1),
                self._store.saved,
                random.Random(self._config.profiling.seed),  # noqa: S311 - spreads profilings, hides nothing
                time.monotonic_ns(),
                time.time_ns() - time.monotonic_ns(),
            )
            self._fabric = Fabric(
                self._config.targets(),
                self._program,
                election_id=config.election_id,
                on_report=self.on_sunk,
                on_status=self._on_switch_status,
            )
            pages = {
                "/": html_page(),
                "/metrics": metrics_page(self._metrics.registry),
                "/status": json_page(self.status),
            }
            http = await stack.enter_async_context(serve(config.http, pages))
            listen = await stack.enter_async_context(self._agents.serve(config.listen))
            await stack.enter_async_context(self._fabric)
            self._log.info("controller started", name=config.name, agents=listen, http=http)
            self.listening.set_result((listen, http))
            async with asyncio.TaskGroup() as tasks:
                loops = [tasks.create_task(self._loop()), tasks.create_task(self._probe_loop())]
                if self._config.counters.check:
                    loops.append(tasks.create_task(self._counter_loop()))
                    loops.append(tasks.create_task(self._profile_counter_loop()))
                await stop.wait()
                for task in loops:
                    task.cancel()
            for write in self._writes:
                write.cancel()
            await asyncio.gather(*self._writes, return_exceptions=True)
            self._save()
        self._log.info("controller stopped")

    def status(self) -> dict[str, object]:
        """Return what GET /status shows."""
        return overview.status(
            self._config,
            self._engine,
            self._fabric.status(),
            self._agents.agents(),
            self._refusals.last,
            time.monotonic_ns(),
        )

    async def _loop(self) -> None:
        config = self._config.controller
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            with self._going_on("ranking failed; the old one stays in force"):
                self._turn()
            ended = clock()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(began + config.tau_s):
                    await self._wake.wait()
            # A ranking that takes long must not leave its peers' messages unread: they get as much time.
            await asyncio.sleep(max(began + config.min_interval_s - clock(), ended - began))
            self._wake.clear()

    async def _probe_loop(self) -> None:
        """Retry and refresh probes in their time, which tau may be longer than."""
        while True:
            await asyncio.sleep(self._config.controller.probe_retry_s / 4)
            with self._going_on("asking for probes failed"):
                self._ask_probes()

    async def _counter_loop(self) -> None:
        """Read the switches' flow counters now and then."""
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            with self._going_on("reading counters failed"):
                await self._read_counters(None, _COUNTERS_S)
            await asyncio.sleep(max(self._config.counters.interval_s, 20 * (clock() - began)))

    async def _profile_counter_loop(self) -> None:
        """Read those of jobs that are profiled, at once when they tell of an iteration."""
        clock = asyncio.get_running_loop().time
        while True:
            await self._count.wait()
            self._count.clear()
            began = clock()
            with self._going_on("reading counters failed"):
                await self._read_counters(self._engine.counting.urgent, PROMPT_NS / 1e9)
            await asyncio.sleep(max(_COUNTERS_GAP_S, 5 * (clock() - began)))

    async def _read_counters(self, jobs: Collection[str] | None, deadline_s: float) -> None:
        """Read what was counted of ``jobs``, or of all; a switch that is being read already is left out.

        Of one that takes longer than ``deadline_s`` nothing is taken: it would be old by then.
        """

        async def read(switch: str, flows: Collection[FiveTuple]) -> dict[FiveTuple, int] | None:
            self._being_read.add(switch)
            try:
                async with asyncio.timeout(deadline_s):
                    counts = await self._fabric.read_flow_counters(switch, flows)
            except (SwitchError, TimeoutError) as error:  # a switch that is gone is told of elsewhere
                self._metrics.counters_unread.labels(switch).inc()
                self._log.debug("a switch does not tell its counters", switch=switch, error=repr(error))
                return None
            finally:
                self._being_read.discard(switch)
            return {flow: sent for flow, (_, sent) in counts.items()}

        asked = {
            switch: flows
            for switch, flows in self._engine.counting.flows(jobs).items()
            if switch not in self._being_read
        }
        told = await asyncio.gather(*(read(switch, flows) for switch, flows in asked.items()))
        readings = {switch: counts for switch, counts in zip(asked, told, strict=True) if counts is not None}
        self._engine.on_counters(readings, time.monotonic_ns(), jobs)

    @contextlib.contextmanager
    def _going_on(self, event: str) -> Iterator[None]:
        """Log and count whatever fails, and go on: the next turn may go well, and traffic flows on."""
        try:
            yield
        except Exception:  # noqa: BLE001 - whatever it is
            self._metrics.loop_errors.inc()
            self._log.exception(event)

    def _turn(self) -> None:
        """Rank once, and give the switches what is new."""
        began_s = time.perf_counter()
        step = self._engine.step(time.monotonic_ns())
        self._save()
        self._fabric.prefer(
            {step.placement.number[group.id]: step.jobs[group.job].rate for group in step.placement.groups}
        )
        changed = {name: wish for name, wish in step.desired.items() if self._given.get(name) != wish}
        if changed:
            self._given = step.desired
            write = asyncio.create_task(self._write(changed))
            self._writes.add(write)
            write.add_done_callback(self._writes.discard)
        self._metrics.rankings.observe(time.perf_counter() - began_s)
        self._tell(step)

    async def _write(self, desired: Mapping[str, Desired]) -> None:
        with self._going_on("writing failed"):
            for switch, outcome in (await self._fabric.apply(desired)).items():
                self._tell_outcome(switch, outcome)

    def _save(self) -> None:
        """Persist numbers at once, before a switch can see them, and progress now and then."""
        to_save = self._engine.to_save()
        saved = self._store.saved
        numbers_changed = to_save.groups != saved.groups or to_save.slots != saved.slots
        if not numbers_changed and time.monotonic() - self._saved_s < _SAVE_EVERY_S:
            return
        self._saved_s = time.monotonic()
        try:
            self._store.save(to_save)
        except sqlite3.Error as error:
            self._metrics.store_errors.inc()
            self._complain(
                "the store cannot be written", store=str(self._config.controller.store), error=str(error)
            )

    def _ask_probes(self) -> None:
        constants = self._program.constants
        for host, probe in self._engine.probes(time.monotonic_ns()):
            request = agent_pb2.ProbeRequest(
                probe=probe.number,
                tuple=encode_flow(probe.flow),
                dscp=constants["INT_DSCP"],
                instructions=INSTRUCTIONS,
                max_hops=constants["INT_MAX_HOPS"],
            )
            if self._agents.ask_probe(host, request):
                self._metrics.probes_sent.inc()
            else:
                self._metrics.probes_failed.inc()

    def _on_report(self, host: str, report: HostReport, arrival_ns: int, malformed: list[str]) -> None:
        self._metrics.reports.labels(host).inc()
        refused, news = self._engine.on_report(host, report, arrival_ns)
        for why in (*malformed, *refused):
            self._on_refused(host, why)
        if self._engine.counting.urgent:
            self._count.set()
        if news:
            self._ask_probes()
            self._wake.set()

    def _on_probe_sent(self, host: str, number: int, error: str) -> None:
        if error:
            self._metrics.probes_failed.inc()
            flow = self._engine.on_not_sent(host, number, time.monotonic_ns())
            self._complain("an agent cannot send a probe", host=host, flow=str(flow), error=error)

    def _on_refused(self, who: str, why: str) -> None:
        self._metrics.refused.inc()
        self._refusals.note(who, why, time.monotonic_ns())
        self._complain("not believed", host=who, reason=why)

    def on_sunk(self, switch: str, report: IntReport) -> None:
        """Take in a probe that ``switch`` sank."""
        try:
            news = self._engine.on_probe(report, time.monotonic_ns())
        except PathError as error:
            self._metrics.paths_refused.inc()
            self._complain("a probe tells no path", switch=switch, reason=str(error))
            return
        self._metrics.paths_learnt.inc()
        if news:
            self._wake.set()

    def _on_switch_status(self, status: SwitchStatus) -> None:
        if status.connected:
            self._engine.suspect_paths(time.monotonic_ns())

    def _tell(self, step: Step) -> None:
        """Show a step in the log and the metrics."""
        metrics = self._metrics
        if step.changes:
            changes = by_job(step.changes, step.now_ns)
            self._log.info("levels", **log_line(changes))
            for name, change in changes.items():
                metrics.level_changes.labels(name).inc(change.groups)
        for host in step.forgotten:
            self._log.info("host forgotten", host=host)
            self._agents.forget(host)
            metrics.drop_host(host)
        for name, job in step.jobs.items():
            metrics.rate.labels(name).set(job.rate)
            metrics.iterations.labels(name).set(job.progress.iterations)
            if job.t_ideal_ns is not None:
                metrics.t_ideal.labels(name).set(job.t_ideal_ns / 1e9)
            metrics.flagged.labels(name).set(bool(job.verdict.flagged))
            metrics.untold.labels(name).set(job.verdict.untold)
        self._tell_flagged(
            {name: job.verdict.flagged for name, job in step.jobs.items() if job.verdict.flagged}
        )
        for gone in self._shown_jobs - step.jobs.keys():
            self._log.info("job ended", job=gone)
            metrics.drop_job(gone)
        self._shown_jobs = set(step.jobs)
        metrics.agents.set(len(self._agents.agents()))
        metrics.flows.set(len(self._engine.flows))
        metrics.flows_without_path.set(self._engine.paths.pending())
        metrics.flows_unplaced.set(len(step.placement.unplaced))
        self._tell_room(step)

    def _tell_flagged(self, flagged: Mapping[str, str]) -> None:
        """Say which jobs' reports are not used, since the switches' counters speak against them."""
        for name in flagged.keys() - self._flagged.keys():
            self._log.warning("a job's report is not used", job=name, reason=flagged[name])
        for name in self._flagged.keys() - flagged.keys():
            self._log.info("a job is believed again, or gone", job=name)
        self._flagged = flagged

    def _tell_room(self, step: Step) -> None:
        """Show whose flows run at the default level because a switch has no room for their entries."""
        left_out = overview.left_out(step, self._fabric.left_out())
        for switch in left_out.keys() | self._left_out.keys():
            jobs = left_out.get(switch, {})
            self._metrics.flows_left_out.labels(switch).set(sum(jobs.values()))
            if jobs.keys() == self._left_out.get(switch, {}).keys():
                continue
            if jobs:
                self._complain(
                    "a switch has no room for all flows",
                    switch=switch,
                    flows=sum(jobs.values()),
                    jobs=", ".join(sorted(jobs)),
                    level=self._config.levels.default,
                )
            else:
                self._log.info("a switch has room for all flows again", switch=switch)
        self._left_out = left_out

    def _tell_outcome(self, switch: str, outcome: Outcome) -> None:
        match outcome.result:
            case Result.APPLIED:
                self._metrics.writes.labels(switch).observe(outcome.total_s)
                if outcome.flip_s is not None:
                    self._metrics.flips.labels(switch).observe(outcome.flip_s)
                if outcome.refused:
                    self._complain("a switch does not hold all", switch=switch, entries=outcome.refused)
            case Result.FAILED:
                self._metrics.write_failures.labels(switch).inc()
                self._complain("a switch did not take its state", switch=switch, error=outcome.error)

    def _complain(self, event: str, **what: object) -> None:
        """Log a warning, the same one about the same peer only now and then: a peer must not fill the log."""
        key = f"{event} {what.get('host') or what.get('switch')}"
        now_s = time.monotonic()
        if now_s - self._complained_s.get(key, -_LOG_REFUSED_EVERY_S) < _LOG_REFUSED_EVERY_S:
            return
        if len(self._complained_s) > 1000:
            self._complained_s.clear()
        self._complained_s[key] = now_s
        self._log.warning(event, **what)
