"""What GET /status shows: jobs, flows, groups, switches and agents as JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields

from controlplane.agents import Agent
from controlplane.config import Config
from controlplane.engine import Engine, RankedJob
from controlplane.southbound import SwitchStatus


def status(
    config: Config,
    engine: Engine,
    switches: Mapping[str, SwitchStatus],
    agents: Sequence[Agent],
    now_ns: int,
) -> dict[str, object]:
    """Return the status of a controller at ``now_ns``; as of its last step where not said otherwise."""
    step = engine.last
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
        "jobs": [_job(job, now_ns) for job in step.jobs.values()],
        "flows": _flows(engine),
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
        "switches": [_switch(switch) for switch in switches.values()],
        "agents": [asdict(agent) for agent in agents],
    }


def _job(job: RankedJob, now_ns: int) -> dict[str, object]:
    return {
        "id": job.progress.id,
        "R": job.rate,
        "iterations": job.progress.iterations,
        "t_ideal_s": None if job.t_ideal_ns is None else job.t_ideal_ns / 1e9,
        "elapsed_s": (now_ns - job.progress.t0_ns) / 1e9,
        "state": job.state,
        "reason": job.reason,
        "hosts": list(job.progress.hosts),
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
                "path": None if path is None else [str(link) for link in path],
                "group": None if group is None else int(group),
                "slot": slot,
            }
        )
    return shown
