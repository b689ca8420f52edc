"""What GET /status shows: jobs, flows, groups, switches and agents as JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields

from controlplane.agents import Agent
from controlplane.changes import JobChange
from controlplane.config import Config
from controlplane.engine import Engine
from controlplane.refusals import Refusal
from controlplane.reports import Timing
from controlplane.southbound import SwitchStatus
from controlplane.step import RankedJob, Step


def status(
    config: Config,
    engine: Engine,
    switches: Mapping[str, SwitchStatus],
    agents: Sequence[Agent],
    refusals: Mapping[str, Refusal],
    now_ns: int,
) -> dict[str, object]:
    """Return the status of a controller at ``now_ns``; as of its last step where not said otherwise."""
    step = engine.last
    without_entry = left_out(step, {name: switch.left_out for name, switch in switches.items()})
    members: dict[str, int] = {}
    for group, _ in step.placement.flows.values():
        members[group] = members.get(group, 0) + 1
    return {
        "controller": {
            "name": config.controller.name,
            "policy": config.policy.name,
            "scope": config.policy.scope.value,
            "levels": config.levels.count,
            "tau_s": config.controller.tau_s,
            "ranked_s_ago": (now_ns - step.now_ns) / 1e9,
        },
        "jobs": [
            _job(job, now_ns) | {"changed": _changed(engine.changed.get(name), now_ns)}
            for name, job in step.jobs.items()
        ],
        "over": [
            {
                "id": name,
                "state": "died" if job.died else "ended",
                "iterations": job.iterations,
                "host": job.host,
                "s_ago": (now_ns - job.over_ns) / 1e9,
            }
            for name, job in engine.over.items()
        ],
        "flows": _flows(engine),
        "queue_pairs": {
            "ambiguous": engine.flows.queue_pairs.ambiguous,
            "alone": engine.flows.queue_pairs.alone,
        },
        "groups": [
            {
                "number": step.placement.number[group.id],
                "job": group.job,
                "path": [str(link) for link in group.path],
                "flows": members[group.id],
                "levels": {str(link): level for link, level in step.levels[group.id].items()},
            }
            for group in step.placement.groups
        ],
        "switches": [
            _switch(switch) | {"left_out": without_entry.get(name, {})} for name, switch in switches.items()
        ],
        "agents": [asdict(agent) for agent in agents],
        "refused": [
            {
                "who": who,
                "count": refusal.count,
                "reason": refusal.reason,
                "s_ago": (now_ns - refusal.last_ns) / 1e9,
            }
            for who, refusal in refusals.items()
        ],
    }


def left_out(step: Step, groups: Mapping[str, Mapping[int, int]]) -> dict[str, dict[str, int]]:
    """Return switch -> job -> flows that run at its default level, since it has no room for their entries.

    ``groups``: the same by the groups' numbers. A switch that has room for all is not there.
    """
    job_of = {step.placement.number[group.id]: group.job for group in step.placement.groups}
    jobs: dict[str, dict[str, int]] = {}
    for name, numbers in groups.items():
        for number, flows in numbers.items():
            if (job := job_of.get(number)) is not None:  # else its flows are about to be gone
                of_switch = jobs.setdefault(name, {})
                of_switch[job] = of_switch.get(job, 0) + flows
    return jobs


def _job(job: RankedJob, now_ns: int) -> dict[str, object]:
    return {
        "id": job.progress.id,
        "R": job.rate,
        "iterations": job.progress.iterations,
        "t_ideal_s": None if job.t_ideal_ns is None else job.t_ideal_ns / 1e9,
        "t_ideal_confidence": job.t_ideal_confidence,
        "elapsed_s": (now_ns - job.progress.t0_ns) / 1e9,
        "checked": job.verdict.checked,
        "flagged": job.verdict.flagged or None,
        "untold": job.verdict.untold,
        "state": job.state,
        "reason": job.reason,
        "hosts": list(job.progress.hosts),
        "format": job.progress.log_format
        or ("no progress source" if job.progress.no_source else "no iteration yet"),
        "estimated": job.progress.estimated,
        "estimated_error": job.progress.estimated_error,
        "hung": job.progress.hung,
        "timing": None if job.progress.timing is None else _timing(job.progress.timing),
        "brief_flows": job.progress.brief_flows,
        "communicators": job.progress.communicators,
    }


def _changed(change: JobChange | None, now_ns: int) -> dict[str, object] | None:
    """Return the last change of a job's levels: when, of how many groups, those of the first, and why."""
    if change is None:
        return None
    return {
        "s_ago": (now_ns - change.now_ns) / 1e9,
        "groups": change.groups,
        "before": change.before,
        "after": change.after,
        "reason": change.reason,
    }


def _timing(timing: Timing) -> dict[str, object]:
    return {
        "iteration_s": timing.iteration_ns / 1e9,
        "spread_s": timing.spread_ns / 1e9,
        "iterations": timing.iterations,
        "confidence": timing.confidence,
        "communication_s": None if timing.communication_ns is None else timing.communication_ns / 1e9,
        "slack_s": None if timing.slack_ns is None else timing.slack_ns / 1e9,
        "slack_confirmed": timing.slack_confirmed,
    }


def _switch(switch: SwitchStatus) -> dict[str, object]:
    values = {field.name: getattr(switch, field.name) for field in fields(switch)}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}


def _flows(engine: Engine) -> list[dict[str, object]]:
    placed = engine.last.placement.flows
    shown: list[dict[str, object]] = []
    for flow, known in engine.flows.known.items():
        path = engine.paths.path(flow)
        group, slot = placed.get(flow, (None, None))
        shown.append(
            {
                "flow": str(flow),
                "source": str(flow.source),
                "destination": str(flow.destination),
                "protocol": flow.protocol,
                "source_port": flow.source_port,
                "destination_port": flow.destination_port,
                "host": known.host,
                "job": known.job,
                "bytes_sent": known.bytes_sent,
                "control": known.control,
                "path": None if path is None else [str(link) for link in path],
                "group": None if group is None else int(group),
                "slot": slot,
            }
        )
    return shown
