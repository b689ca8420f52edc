"""What is due when: a tournament over everything that can happen, the earliest at its root.

Items are flows, then phases, then jobs. Item i is leaf ``n + i`` of ``State.tree``, whose node k holds the
earlier of nodes 2 k and 2 k + 1; ``State.due``, ``timer`` and ``paused`` are the leaves. Most changes of a
time do not reach far up.
"""

from __future__ import annotations

from simulator.compiled import compiled
from simulator.state import FLOWS, ITEMS, PHASES, State


@compiled
def put(s: State, item: int, time: float) -> None:
    """Have ``item`` happen at ``time`` (inf: never)."""
    node = s.counts[ITEMS] + item
    s.tree[node] = time
    while node > 1:
        other = s.tree[node ^ 1]
        best = s.tree[node]
        if other < best:
            best = other
        node >>= 1
        if s.tree[node] == best:
            break
        s.tree[node] = best


@compiled
def put_phase(s: State, phase: int, time: float) -> None:
    """Have the timer of ``phase`` ring at ``time``."""
    put(s, s.counts[FLOWS] + phase, time)


@compiled
def put_job(s: State, job: int, time: float) -> None:
    """Have the next iteration of ``job`` start at ``time``."""
    put(s, s.counts[FLOWS] + s.counts[PHASES] + job, time)


@compiled
def first_due(s: State) -> int:
    """Return the item that is due first; there must be one."""
    node = 1
    while node < s.counts[ITEMS]:
        node <<= 1
        if s.tree[node + 1] < s.tree[node]:
            node += 1
    return node - int(s.counts[ITEMS])


@compiled
def build(s: State) -> None:
    """Compute the inner nodes from the leaves."""
    for node in range(s.counts[ITEMS] - 1, 0, -1):
        s.tree[node] = min(s.tree[2 * node], s.tree[2 * node + 1])
