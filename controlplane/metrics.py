"""The controller's Prometheus metrics, in a registry of their own."""

from __future__ import annotations

import contextlib

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


class Metrics:
    """What GET /metrics shows. One instance per controller."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.rate = Gauge(
            "leveller_job_progress_rate", "Normalized progress rate R of a job.", ["job"], registry=registry
        )
        self.iterations = Gauge(
            "leveller_job_iterations", "Iterations a job has completed.", ["job"], registry=registry
        )
        self.t_ideal = Gauge(
            "leveller_job_ideal_iteration_seconds",
            "T_ideal of a job, once known.",
            ["job"],
            registry=registry,
        )
        self.flagged = Gauge(
            "leveller_job_flagged",
            "1 while a job's report is not used, since switches' counters speak against it.",
            ["job"],
            registry=registry,
        )
        self.untold = Gauge(
            "leveller_job_untold_iterations",
            "Iterations that a job has done by the switches' counters and not told of.",
            ["job"],
            registry=registry,
        )
        self.counters_unread = Counter(
            "leveller_counters_unread",
            "Times that a switch did not tell its flow counters.",
            ["switch"],
            registry=registry,
        )
        self.level_changes = Counter(
            "leveller_level_changes", "Changes of a group's levels.", ["job"], registry=registry
        )
        self.rankings = Histogram(
            "leveller_ranking_seconds",
            "Time from what is known to what every switch should hold.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.loop_errors = Counter(
            "leveller_loop_errors", "Rankings that failed; the old one stayed in force.", registry=registry
        )
        self.agents = Gauge("leveller_agents_connected", "Agents with an open stream.", registry=registry)
        self.reports = Counter("leveller_reports", "Reports from agents.", ["host"], registry=registry)
        self.refused = Counter(
            "leveller_reports_refused",
            "Parts of agents' reports, or streams, that were malformed or not believed.",
            registry=registry,
        )
        self.probes_sent = Counter("leveller_probes_requested", "Probes asked of agents.", registry=registry)
        self.probes_failed = Counter(
            "leveller_probes_failed",
            "Probes that an agent could not be asked for or could not send.",
            registry=registry,
        )
        self.paths_learnt = Counter("leveller_paths_learnt", "Probes that told a path.", registry=registry)
        self.paths_refused = Counter(
            "leveller_paths_refused", "Sunk probes that told no path of a known flow.", registry=registry
        )
        self.flows = Gauge("leveller_flows", "Flows that agents report.", registry=registry)
        self.flows_without_path = Gauge(
            "leveller_flows_without_path", "Flows whose path is not known.", registry=registry
        )
        self.flows_unplaced = Gauge(
            "leveller_flows_unplaced", "Flows for which the switches have no room left.", registry=registry
        )
        self.flows_left_out = Gauge(
            "leveller_flows_left_out",
            "Flows at the default level, since a switch has no room for their entries.",
            ["switch"],
            registry=registry,
        )
        self.writes = Histogram(
            "leveller_write_seconds",
            "Time until a switch acknowledged all of a new state.",
            ["switch"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.flips = Histogram(
            "leveller_flip_seconds",
            "Time until a switch acknowledged the flip to a new ranking.",
            ["switch"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.write_failures = Counter(
            "leveller_write_failures", "New states that a switch did not take.", ["switch"], registry=registry
        )
        self.store_errors = Counter("leveller_store_errors", "Saves that failed.", registry=registry)

    def drop_job(self, job: str) -> None:
        """Remove the series of a job that is gone."""
        for metric in (
            self.rate,
            self.iterations,
            self.t_ideal,
            self.flagged,
            self.untold,
            self.level_changes,
        ):
            with contextlib.suppress(KeyError):
                metric.remove(job)

    def drop_host(self, host: str) -> None:
        """Remove the series of a host that is forgotten."""
        with contextlib.suppress(KeyError):
            self.reports.remove(host)
