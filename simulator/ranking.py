"""Ranking: what the policy is told, and the levels it gives as the engine's array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType

import numpy as np

from controlplane.model import Group, Job, Levels
from controlplane.policies import Incidence, Policy
from controlplane.policies.contention import job_components
from controlplane.policies.incidence import NodeLevels, Nodes
from controlplane.policies.tables import Table, Tables
from simulator.compiled import COMPILED
from simulator.fabric import Fabric
from simulator.jobs import links_of
from simulator.plan import Plan
from simulator.progress import Account
from simulator.scenario import PolicySection
from simulator.state import Ints, State


@dataclass(frozen=True, slots=True)
class Running:
    """A job in the fabric.

    ``rows`` says which of ``groups`` each of its rows of flows belongs to, ``places`` where each of its
    entries' level stands in its groups' levels, ``links`` which link each of those is for.
    """

    number: int
    plan: Plan
    start: float
    taken: dict[str, int]
    ideal_s: float
    link_seconds: dict[int, float]
    groups: tuple[Group, ...]
    rows: tuple[int, ...]
    places: Ints
    links: Ints
    comm_s: float
    """Seconds of an iteration in which its busiest link carries it."""
    intensity: float

    def seen(self, rate: float, done: int) -> Job:
        """Return the job as a policy sees it, at ``rate`` after ``done`` iterations."""
        plan = self.plan
        return Job(
            plan.id,
            rate=rate,
            iterations=done,
            intensity=self.intensity,
            compute_s=plan.compute_s,
            comm_s=self.comm_s,
            weight=plan.weight,
        )

    def rate(self, done: int, now: float) -> float:
        """Return R after ``done`` iterations."""
        return done * self.ideal_s / (now - self.start) if now > self.start else 0.0


def enter(number: int, plan: Plan, fabric: Fabric, start: float, taken: dict[str, int]) -> Running:
    """Return ``plan`` as a job that runs from ``start`` on, on the GPUs ``taken``."""
    capacity = fabric.capacity
    load = dict.fromkeys(plan.groups, 0.0)
    for phase in plan.phases:
        for flows in phase.flows:
            load[flows.path, phase.key] += flows.width * flows.volume
    groups = tuple(
        Group(f"{plan.id}/{place}", plan.id, links_of(path, fabric), load[path, key], key)
        for place, (path, key) in enumerate(plan.groups)
    )
    number_of = {group: place for place, group in enumerate(plan.groups)}
    rows = tuple(number_of[flows.path, phase.key] for phase in plan.phases for flows in phase.flows)
    first = np.cumsum([0, *(len(group.path) for group in groups)])
    places = [int(first[row]) + hop for row in rows for hop in range(len(groups[row].path))]
    link_seconds = plan.link_seconds(capacity)
    comm_s = max(link_seconds.values(), default=0.0)
    return Running(
        number,
        plan,
        start,
        taken,
        plan.ideal_s(capacity),
        link_seconds,
        groups,
        rows,
        np.array(places, np.int64),
        np.array([link for path, _ in plan.groups for link in path], np.int64),
        comm_s,
        plan.gpus * plan.compute_s / comm_s if comm_s else np.inf,
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """How the levels of nodes become an array: of which node each entry of the jobs' rows has its level.

    ``pairs`` are the nodes of one group next to each other.
    """

    nodes: Nodes
    of_entry: Ints
    pairs: tuple[Ints, Ints]

    @classmethod
    def of(cls, nodes: Nodes, running: Sequence[Running]) -> Layout:
        """Return that of the ``running`` jobs, whose groups ``nodes`` are of."""
        group = np.repeat(np.arange(len(nodes.incidence)), np.diff(nodes.incidence.starts))
        node = group if nodes.node_of is None else np.asarray(nodes.node_of, np.int64)
        next_to = (group[1:] == group[:-1]) & (node[1:] != node[:-1])
        return cls(nodes, node[places(running)], (node[:-1][next_to], node[1:][next_to]))

    def array(self, level: Table) -> tuple[Ints, bool]:
        """Return what `as_array` does for the ``level`` of each node."""
        of_node = np.asarray(level, np.int64)
        before, after = self.pairs
        return of_node[self.of_entry], len(before) > 0 and bool((of_node[before] != of_node[after]).any())


@dataclass(slots=True)
class Ranking:
    """A policy with the scenario's settings, and what is remembered from one ranking to the next."""

    policy: Policy
    settings: PolicySection
    _accounts: dict[int, Account] = field(default_factory=dict, init=False)
    _running: Sequence[Running] = field(default=(), init=False)
    _groups: Incidence = field(default_factory=lambda: Incidence(()), init=False)
    _layout: Layout | None = field(default=None, init=False)

    def levels(
        self,
        running: Sequence[Running],
        done: Sequence[int],
        now: float,
        sent: Mapping[str, float] = MappingProxyType({}),
    ) -> Levels:
        """Return every group's levels at ``now``, when the jobs have ``done`` iterations.

        ``running`` is the same object until jobs come, go or move. ``sent`` is what `sent` gives, for
        policies that ask for it.
        """
        if running is not self._running:
            self._running = running
            known = self._accounts
            self._accounts = {job.number: known.get(job.number) or self._open(job.start) for job in running}
            names = np.concatenate([np.zeros(0, np.int64), *(job.links for job in running)])
            groups = chain.from_iterable(job.groups for job in running)
            self._groups = Incidence(groups, Tables(COMPILED), names)
        jobs = [
            job.seen(account.rate(count, job.ideal_s, now), count)
            for job, account, count in zip(running, self._accounts.values(), done, strict=True)
        ]
        seen: Sequence[Group] = self._groups
        if sent:
            seen = [replace(group, sent=sent.get(group.id)) for group in seen]
        count, scope = self.settings.levels, self.settings.scope
        alone = self._profiled(running, done)
        if not alone or count == 1:
            return self.policy(jobs, seen, count, scope)
        top = {
            group.id: dict.fromkeys(group.path, count - 1)
            for job in running
            if job.plan.id in alone
            for group in job.groups
        }
        return {**self.policy(jobs, seen, count - 1, scope), **top}

    def as_array(self, running: Sequence[Running], levels: Levels) -> tuple[Ints, bool]:
        """Return what `as_array` does, at once where ``levels`` are of the jobs as they were ranked last."""
        if (
            running is not self._running
            or not isinstance(levels, NodeLevels)
            or levels.nodes.incidence is not self._groups
        ):
            return as_array(running, levels)
        if self._layout is None or self._layout.nodes is not levels.nodes:
            self._layout = Layout.of(levels.nodes, running)
        return self._layout.array(levels.level)

    def _open(self, start: float) -> Account:
        return Account(start, self.settings.half_life_s, self.settings.optimism_s)

    def _profiled(self, running: Sequence[Running], done: Sequence[int]) -> set[str]:
        """Return the jobs to profile now: in each component the earliest that still has to be."""
        limit = self.settings.profile_iterations
        new = [job.plan.id for job, count in zip(running, done, strict=True) if count < limit]
        if not new:
            return set()
        groups = [group for job in running for group in job.groups]
        components = job_components([job.plan.id for job in running], groups)
        return {next(name for name in new if name in members) for members in components if members & set(new)}


def sent(running: Sequence[Running], state: State, now: float) -> dict[str, float]:
    """Return, for each group with flows under way at ``now``, how much of the slowest one has arrived."""
    left = state.left - state.rate * (now - state.since)
    share = 1 - left / np.where(state.volume > 0, state.volume, 1)
    found: dict[str, float] = {}
    flow = 0
    for job in running:
        for row in job.rows:
            if state.active[flow]:
                group = job.groups[row].id
                found[group] = min(found.get(group, 1.0), float(share[flow]))
            flow += 1
    return found


def places(running: Sequence[Running]) -> Ints:
    """Return where the level of each entry of the jobs' rows is in those of all groups, one after another."""
    first = 0
    found = [np.zeros(0, np.int64)]
    for job in running:
        found.append(job.places + first)
        first += len(job.links)
    return np.concatenate(found)


def as_array(running: Sequence[Running], levels: Levels) -> tuple[Ints, bool]:
    """Return ``levels`` per entry of the jobs' rows, and whether a group has different ones along its path.

    Where ``levels`` were computed before a group's job came, or before the group came to a link, it is at
    level 0.
    """
    rows = []
    per_link = False
    for job in running:
        flat: list[int] = []
        for group in job.groups:
            on = levels.get(group.id, {})
            own = [on.get(link, 0) for link in group.path]
            per_link = per_link or min(own) != max(own)
            flat += own
        rows.append(np.array(flat, np.int64)[job.places] if flat else np.zeros(0, np.int64))
    return np.concatenate(rows) if rows else np.zeros(0, np.int64), per_link
