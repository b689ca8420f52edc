"""How long a ranking takes at scale: a million flows of 1,000 jobs over 16,384 hosts in a three-layer Clos.

Jobs are placed at random, every flow goes between two hosts of its job on a path that ECMP draws, so that the
whole fabric is one contention component, the worst case.

- levels_s: `levels_in_order`, what policies call: groups in, a level per group and link out. peak_mib is what
  the process grew by meanwhile.
- update_s: the same after the progress of 1 % of the jobs, and with it the order, has changed. Nothing is
  kept from one ranking to the next, so it costs as much.
- prune_s: of levels_s the pruning alone, from arrays of the group-link incidence to a depth per group
  (compiled where numba is installed); passes is how many times longer that takes than pass_s, one numpy pass
  over the incidence (the first job on every link), and levels_passes the same of levels_s.
- literal_s: the paper's pseudo-code on a networkx graph with a node per group, for as many flows as fit. Its
  levels have to be the same.

Times are the best of --repeat, after a first call.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import networkx as nx
import numpy as np
from rich.console import Console
from rich.table import Table

from controlplane.groups import group_flows
from controlplane.model import Group, Link
from controlplane.model import Path as Hops
from controlplane.policies import Scope
from controlplane.policies.ordered import levels_in_order
from controlplane.policies.pruning import compiled_depths, depths

PODS, LEAVES, HOSTS = 32, 16, 32
"""Pods, leaves per pod, hosts per leaf: 16,384 hosts."""

AGGS, CORES = 16, 16
"""Aggregation switches per pod, cores above each."""


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


@dataclass(frozen=True, slots=True)
class Incidence:
    """The group-link incidence as arrays: by group, and (``starts``, ``members``) sorted by link."""

    owners: np.ndarray
    offsets: np.ndarray
    links: np.ndarray
    starts: np.ndarray
    members: np.ndarray

    @classmethod
    def of(cls, order: Sequence[str], groups: Sequence[Group]) -> Incidence:
        """Build it."""
        position = {job: place for place, job in enumerate(order)}
        number: dict[Link, int] = {}
        links = np.array(
            [number.setdefault(link, len(number)) for group in groups for link in group.path], np.int32
        )
        sizes = [len(group.path) for group in groups]
        by_link = links.argsort(kind="stable")
        return cls(
            np.array([position[group.job] for group in groups], np.int32),
            np.cumsum([0, *sizes], dtype=np.int32),
            links,
            np.flatnonzero(np.diff(links[by_link], prepend=-1)),
            np.repeat(np.arange(len(groups)), sizes)[by_link],
        )

    def first_jobs(self) -> np.ndarray:
        """Return the first job on every link: one pass."""
        return np.minimum.reduceat(self.owners[self.members], self.starts)

    def depths(self) -> object:
        """Prune."""
        arrays = (self.owners, self.offsets, self.links)
        compiled = compiled_depths()
        if compiled is None:
            owners, offsets, links = (one.tolist() for one in arrays)
            return depths(owners, offsets, links, len(self.starts))
        return compiled(*arrays, len(self.starts))


def best_of(repeat: int, call: Callable[[], object]) -> float:
    """Return the shortest wall time of ``call``."""
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
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
    """Measure a ranking, an update and the floor."""
    order, groups = instance(flows, jobs)
    changed = list(order)
    draw = random.Random(1)
    for job in draw.sample(order, max(jobs // 100, 1)):
        changed.remove(job)
        changed.insert(draw.randrange(jobs), job)
    grown = grown_mib(lambda: levels_in_order(order, groups, count, scope))
    full = best_of(repeat, lambda: levels_in_order(order, groups, count, scope))
    update = best_of(repeat, lambda: levels_in_order(changed, groups, count, scope))
    floor = Incidence.of(order, groups)
    one_pass = best_of(max(repeat, 5), floor.first_jobs)
    floor.depths()
    pruning = best_of(repeat, floor.depths)
    return {
        "flows": flows,
        "jobs": jobs,
        "groups": len(groups),
        "incidence": len(floor.members),
        "levels_s": full,
        "peak_mib": grown,
        "update_s": update,
        "update_share": update / full,
        "prune_s": pruning,
        "pass_s": one_pass,
        "passes": pruning / one_pass,
        "levels_passes": full / one_pass,
    }


def beside_literal(flows: int, jobs: int, count: int) -> dict[str, float]:
    """Measure a ranking beside the paper's pseudo-code, and compare the levels."""
    order, groups = instance(flows, jobs)
    ours = best_of(3, lambda: levels_in_order(order, groups, count, Scope.FABRIC))
    theirs = best_of(1, lambda: literal(order, groups, count))
    levels = levels_in_order(order, groups, count, Scope.FABRIC)
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
