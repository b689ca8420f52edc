"""How long a ranking takes at scale: a million flows of 1,000 jobs over 16,384 hosts in a three-layer Clos.

Jobs are placed at random, every flow goes between two hosts of its job on a path that ECMP draws, so that all
jobs contend on nearly every link between switches, the worst case.

- levels_s: the policy `leveller`, from the jobs' R and a list of groups to levels. peak_mib is what the
  process grew by meanwhile.
- ranking_s: the same for groups that have been ranked before, as an `Incidence`, when all jobs have changed
  places. passes is how many times longer that takes than pass_s, one numpy pass over the incidence (the first
  job on every link), and levels_passes the same of levels_s.
- update_s: the same when the progress of 1 % of the jobs has changed, other ones each time; the median, and
  the worst. In the end the levels have to be the same as from nothing.
- literal_s: the paper's pseudo-code on a networkx graph with a node per group, for as many flows as fit. Its
  levels have to be the same.

Other times are the best of --repeat, after a first call; loops are compiled where numba is installed. All are
CPU time, which for one thread is wall time on a machine with nothing else to do; load is its load average.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

import networkx as nx
import numpy as np
from rich.console import Console
from rich.table import Table

from controlplane.groups import group_flows
from controlplane.model import Group, Job, Levels, Link
from controlplane.model import Path as Hops
from controlplane.policies import Incidence, Scope, leveller
from controlplane.policies.incidence import NodeLevels

PODS, LEAVES, HOSTS = 32, 16, 32
"""Pods, leaves per pod, hosts per leaf: 16,384 hosts."""

AGGS, CORES = 16, 16
"""Aggregation switches per pod, cores above each."""

UPDATES = 30
"""Updates of 1 % of the jobs."""


class Clos:
    """The switches' links, each made once."""

    def __init__(self) -> None:
        self._links: dict[Link, Link] = {}

    def link(self, switch: str, port: int) -> Link:
        """Return the link, always the same object."""
        link = Link(switch, port)
        return self._links.setdefault(link, link)

    def path(self, source: int, target: int, agg: int, core: int) -> Hops:
        """Return the switches' egress ports from host ``source`` to ``target`` by the given choices."""
        leaf, other = source // HOSTS, target // HOSTS
        last = self.link(f"leaf{other}", target % HOSTS)
        if leaf == other:
            return (last,)
        pod, far = leaf // LEAVES, other // LEAVES
        up = self.link(f"leaf{leaf}", HOSTS + agg)
        down = self.link(f"agg{far}.{agg}", other % LEAVES)
        if pod == far:
            return (up, down, last)
        top = self.link(f"agg{pod}.{agg}", LEAVES + core)
        return (up, top, self.link(f"core{agg}.{core}", far), down, last)


def instance(flows: int, jobs: int, seed: int = 0) -> tuple[list[str], list[Group]]:
    """Return the jobs in order and their groups."""
    draw = random.Random(seed)
    clos = Clos()
    places = list(range(PODS * LEAVES * HOSTS))
    draw.shuffle(places)
    share = len(places) // jobs

    def routes() -> list[tuple[int, str, Hops]]:
        found = []
        for flow in range(flows):
            job = flow * jobs // flows
            source, target = draw.sample(range(job * share, (job + 1) * share), 2)
            path = clos.path(places[source], places[target], draw.randrange(AGGS), draw.randrange(CORES))
            found.append((flow, f"job{job}", path))
        return found

    groups, _ = group_flows(routes())
    order = [f"job{job}" for job in range(jobs)]
    draw.shuffle(order)
    return order, groups


def literal(order: Sequence[str], groups: Sequence[Group], count: int) -> dict[str, int]:
    """Prune the contention graph as the paper writes it."""
    graph: nx.Graph[Group] = nx.Graph()
    graph.add_nodes_from(groups)
    on_link: dict[Link, list[Group]] = {}
    for group in groups:
        for link in group.path:
            on_link.setdefault(link, []).append(group)
    for here in on_link.values():
        graph.add_edges_from((one, two) for one, two in combinations(here, 2) if one.job != two.job)
    position = {job: place for place, job in enumerate(order)}
    level = {group.id: 0 for group in groups}
    for current in range(count - 1, 0, -1):
        for component in list(nx.connected_components(graph)):
            first = min(position[group.job] for group in component)
            chosen = [group for group in component if position[group.job] == first]
            level.update({group.id: current for group in chosen})
            graph.remove_nodes_from(chosen)
    return level


def jobs_in(order: Sequence[str]) -> list[Job]:
    """Return jobs of which earlier ones in ``order`` have a lower R."""
    return [Job(job, rate=place / len(order)) for place, job in enumerate(order)]


def ranked(order: Sequence[str], groups: Sequence[Group], count: int, scope: Scope) -> Levels:
    """Rank, and read the levels of one group: whatever is put off until somebody asks is done then."""
    levels = leveller.levels(jobs_in(order), groups, count, scope)
    levels[groups[0].id]
    return levels


def one_pass(incidence: Incidence) -> Callable[[], object]:
    """Return a numpy pass over the incidence: the first job on every link."""
    links = np.asarray(incidence.links)
    owner = np.repeat(np.arange(len(incidence.jobs), dtype=np.int32), np.diff(incidence.job_groups))
    group = np.repeat(np.arange(len(incidence), dtype=np.int32), np.diff(incidence.starts))
    members = group[np.argsort(links, kind="stable")]
    starts = np.searchsorted(np.sort(links), np.arange(incidence.size)).astype(np.int32)
    return lambda: np.minimum.reduceat(owner[members], starts)


def best_of(repeat: int, call: Callable[[], object]) -> float:
    """Return the shortest CPU time of ``call``."""
    times = []
    for _ in range(repeat):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return min(times)


def memory_mib(field: str) -> float:
    """Return VmRSS (now) or VmHWM (at most, since it was last cleared) of this process."""
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index(f"{field}:") + 1]) / 1024


def grown_mib(call: Callable[[], object]) -> float:
    """Return by how much the process grew, at most, during ``call``."""
    Path("/proc/self/clear_refs").write_text("5")
    before = memory_mib("VmRSS")
    call()
    return memory_mib("VmHWM") - before


def measure(flows: int, jobs: int, count: int, scope: Scope, repeat: int) -> dict[str, float]:
    """Measure rankings, updates and the floor."""
    order, groups = instance(flows, jobs)
    draw = random.Random(1)
    grown = grown_mib(lambda: ranked(order, groups, count, scope))
    full = best_of(repeat, lambda: ranked(order, groups, count, scope))
    incidence = Incidence(groups)
    ranked(order, incidence, count, scope)
    shuffles = iter([draw.sample(order, jobs) for _ in range(repeat)])
    ranking = best_of(repeat, lambda: ranked(next(shuffles), incidence, count, scope))
    ranked(order, incidence, count, scope)
    updates = []
    for _ in range(UPDATES):
        for job in draw.sample(order, max(jobs // 100, 1)):
            order.remove(job)
            order.insert(draw.randrange(jobs), job)
        updates.append(best_of(1, lambda: ranked(order, incidence, count, scope)))
    kept, new = (ranked(order, those, count, scope) for those in (incidence, groups))
    assert isinstance(kept, NodeLevels)
    assert isinstance(new, NodeLevels)
    if list(kept.level) != list(new.level):
        raise SystemExit("the levels after updates differ from those of a ranking from nothing")
    floor = best_of(max(repeat, 5), one_pass(incidence))
    update = statistics.median(updates)
    return {
        "flows": flows,
        "jobs": jobs,
        "groups": len(groups),
        "incidence": len(incidence.links),
        "levels_s": full,
        "peak_mib": grown,
        "ranking_s": ranking,
        "update_s": update,
        "update_worst_s": max(updates),
        "update_share": update / full,
        "update_worst_share": max(updates) / full,
        "pass_s": floor,
        "passes": ranking / floor,
        "levels_passes": full / floor,
        "load": os.getloadavg()[0],
    }


def beside_literal(flows: int, jobs: int, count: int) -> dict[str, float]:
    """Measure a ranking beside the paper's pseudo-code, and compare the levels."""
    order, groups = instance(flows, jobs)
    ours = best_of(3, lambda: ranked(order, groups, count, Scope.FABRIC))
    theirs = best_of(1, lambda: literal(order, groups, count))
    levels = ranked(order, groups, count, Scope.FABRIC)
    if literal(order, groups, count) != {group: min(on.values()) for group, on in levels.items()}:
        raise SystemExit("the levels differ from the paper's pseudo-code")
    return {
        "flows": flows,
        "jobs": jobs,
        "groups": len(groups),
        "levels_s": ours,
        "literal_s": theirs,
        "literal_ratio": theirs / ours,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--flows", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--levels", type=int, default=8, help="K")
    parser.add_argument("--scope", choices=list(Scope), default=Scope.FABRIC)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--literal-flows", type=int, default=20_000, help="0: leave networkx out")
    options = parser.parse_args()
    rows = []
    if options.literal_flows:
        rows.append(beside_literal(options.literal_flows, options.jobs, options.levels))
    rows.append(measure(options.flows, options.jobs, options.levels, Scope(options.scope), options.repeat))
    if options.json:
        print(json.dumps(rows))
        return
    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = Table("", *(str(row["flows"]) + " flows" for row in rows))
    for name in columns[1:]:
        table.add_row(name, *(f"{row[name]:.4g}" if name in row else "" for row in rows))
    Console().print(table)


if __name__ == "__main__":
    main()
