"""Crux (SIGCOMM 2024): static priority by GPU intensity, corrected for duty cycles, compressed by graph cuts.

Crux selects paths too (`choose_paths`), for whoever can place flows on them: the simulator does.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from controlplane.model import Group, Job, Levels
from controlplane.policies.interface import Scope
from controlplane.policies.ordered import levels_in_order

SAMPLES = 10
"""Random topological orders that compression tries."""

PAIR_ITERATIONS = 400
"""After this many iterations a pair of jobs has long been in its steady state."""


def levels(jobs: Sequence[Job], groups: Sequence[Group], count: int, scope: Scope) -> Levels:
    """Rank jobs by decreasing priority P = k I; ties go to the smaller id (as text).

    Under scope ``fabric`` a job has one level, by Crux's own compression. Under the others, which the paper
    does not have, the jobs that meet on a switch or link are ranked by P there. ValueError as for every
    policy.
    """
    if scope is not Scope.FABRIC:
        return levels_in_order(order(jobs), groups, count, scope)
    if count < 1:
        raise ValueError(f"count = {count}: there must be at least one level")
    priority = priorities(jobs)
    for group in groups:
        if group.job not in priority:
            raise ValueError(f"group {group.id}: job {group.job!r} is not among the jobs")
    level = compress(order(jobs), priority, meetings(groups), count)
    return {group.id: dict.fromkeys(group.path, level[group.job]) for group in groups}


def order(jobs: Sequence[Job]) -> list[str]:
    """Return the jobs' ids by decreasing priority."""
    priority = priorities(jobs)
    return sorted(priority, key=lambda job: (-priority[job], job))


def priorities(jobs: Sequence[Job]) -> dict[str, float]:
    """Return P_j = k_j I_j. The reference, with k = 1, is the job with the most communication.

    Where computation and communication times are unknown (0), k is 1. Ties for the reference go to the
    smaller id.
    """
    timed = [job for job in jobs if job.compute_s > 0 and job.comm_s > 0]
    reference = min(timed, key=lambda job: (-job.comm_s, job.id), default=None)
    return {
        job.id: job.intensity * correction(job, reference) if reference and job in timed else job.intensity
        for job in jobs
    }


def correction(job: Job, reference: Job) -> float:
    """Return k_j = (S_j(j) - S_j(r)) / (S_r(r) - S_r(j)).

    S_x(y) is the communication that x gets done per second, in steady state, when y has strict priority. It
    says what ``job`` gains from going first over what the reference would gain. Where going first gains the
    reference nothing, or neither, the paper is silent: k is 1.
    """
    gain = sent(job, job) - sent(job, reference)
    loss = sent(reference, reference) - sent(reference, job)
    return gain / loss if loss > 1e-9 and gain > 1e-9 else 1.0


def sent(job: Job, first: Job) -> float:
    """Return S_job(first), in link-seconds per second: both on one link, both started together."""
    if job.id == first.id:
        return job.comm_s / (job.compute_s + job.comm_s)
    return _sent_behind(job.compute_s, job.comm_s, first.compute_s, first.comm_s)


@lru_cache(maxsize=65_536)
def _sent_behind(compute: float, comm: float, first_compute: float, first_comm: float) -> float:
    now, half = 0.0, 0.0
    for number in range(PAIR_ITERATIONS):
        if number == PAIR_ITERATIONS // 2:
            half = now
        now = _end_of_sending(now + compute, comm, first_compute, first_compute + first_comm)
    # The second half alone: by then the two repeat one pattern, or come as close to it as they ever will.
    return comm * (PAIR_ITERATIONS - PAIR_ITERATIONS // 2) / (now - half)


def _end_of_sending(start: float, amount: float, gap: float, period: float) -> float:
    """Return when ``amount`` seconds of sending end that begin at ``start`` and may use only the gaps.

    The link is free for ``gap`` seconds from each multiple of ``period``.
    """
    number = int(start // period)
    phase = min(start - number * period, gap)
    left = amount - (gap - phase)
    if left <= 1e-12:
        return number * period + phase + amount
    whole = int(left // gap)
    rest = left - whole * gap
    if rest <= 1e-12:
        whole, rest = whole - 1, gap
    return (number + 1 + whole) * period + rest


def meetings(groups: Sequence[Group]) -> set[tuple[str, str]]:
    """Return the pairs of jobs that share a link, each in the order of ids."""
    on_link: dict[object, set[str]] = {}
    for group in groups:
        for link in group.path:
            on_link.setdefault(link, set()).add(group.job)
    return {pair for jobs in on_link.values() for pair in combinations(sorted(jobs), 2)}


def compress(
    ranked: Sequence[str], priority: Mapping[str, float], pairs: set[tuple[str, str]], count: int
) -> dict[str, int]:
    """Compress an order of jobs to ``count`` levels (Algorithm 1).

    Where two jobs share a link an edge leads from the higher to the lower one, with the higher's priority as
    weight. Cut a topological order into ``count`` consecutive segments so that the edges across segments
    weigh most; do so for `SAMPLES` random orders (always the same ones) and for ``ranked`` itself, and keep
    the best.
    """
    place = {job: index for index, job in enumerate(ranked)}
    edges = [tuple(sorted((place[one], place[other]))) for one, other in pairs]
    later: list[list[int]] = [[] for _ in ranked]
    for high, low in edges:
        later[high].append(low)
    generator = random.Random(0)  # noqa: S311 (two controllers must draw the same orders)
    best: tuple[float, dict[str, int]] | None = None
    for sample in range(SAMPLES + 1):
        turn = _topological(later, generator) if sample else list(range(len(ranked)))
        weight, segments = _best_cut(turn, later, [max(priority[job], 0.0) for job in ranked], count)
        if best is None or weight > best[0]:
            best = weight, {ranked[job]: count - 1 - segment for job, segment in segments.items()}
    return best[1] if best else {}


def _topological(later: Sequence[Sequence[int]], generator: random.Random) -> list[int]:
    """Return a random topological order of the graph ``later``."""
    waits = [0] * len(later)
    for targets in later:
        for target in targets:
            waits[target] += 1
    ready = [job for job, count in enumerate(waits) if not count]
    turn = []
    while ready:
        job = ready.pop(generator.randrange(len(ready)))
        turn.append(job)
        for target in later[job]:
            waits[target] -= 1
            if not waits[target]:
                ready.append(target)
    return turn


def _best_cut(
    turn: Sequence[int], later: Sequence[Sequence[int]], priority: Sequence[float], count: int
) -> tuple[float, dict[int, int]]:
    """Return the greatest weight that ``count`` segments of ``turn`` cut, and every job's segment from 0.

    f(i, k) = max over j < i of f(j, k - 1) + C(j, i), where C(j, i) is the weight of the edges from the first
    j jobs into those from j to i, by prefix sums; k runs to ``count`` and i to the number of jobs (the
    printed algorithm has the two mixed up).
    """
    # Imported here: numpy takes a while to load, and most commands and policies do without.
    import numpy as np

    size = len(turn)
    at = {job: index for index, job in enumerate(turn)}
    weight = np.zeros((size + 1, size + 1))
    for job, targets in enumerate(later):
        for target in targets:
            weight[at[job] + 1, at[target] + 1] = priority[job]
    prefix = weight.cumsum(axis=0).cumsum(axis=1)
    cut = prefix - np.diag(prefix)[:, None]  # cut[j, i] = prefix[j, i] - prefix[j, j]
    cut[np.tril_indices(size + 1, -1)] = -np.inf
    value = np.zeros(size + 1)  # one segment cuts nothing
    choices = []
    for _ in range(1, count):
        options = value[:, None] + cut
        choices.append(options.argmax(axis=0))
        value = options.max(axis=0)
    segments: dict[int, int] = {}
    end = size
    for segment in range(count - 1, -1, -1):
        start = int(choices[segment - 1][end]) if segment else 0
        segments |= {turn[index]: segment for index in range(start, end)}
        end = start
    return float(value[size]), segments


@dataclass(frozen=True, slots=True)
class Demand:
    """A connection of ``job`` over one of ``candidates``, whose links it keeps busy for ``load`` seconds."""

    job: str
    candidates: Sequence[Sequence[Hashable]]
    load: float


def choose_paths(jobs: Sequence[Job], demands: Sequence[Demand]) -> list[int]:
    """Return which candidate each of ``demands`` takes: Crux's path selection.

    Jobs choose in descending intensity (ties: the smaller id), each of their connections the candidate whose
    busiest link is least busy so far. The paper leaves ties open: then the least busy in sum, then the first.
    """
    turn = {job.id: place for place, job in enumerate(sorted(jobs, key=lambda job: (-job.intensity, job.id)))}
    busy: defaultdict[Hashable, float] = defaultdict(float)
    chosen = [0] * len(demands)
    for place in sorted(range(len(demands)), key=lambda place: turn[demands[place].job]):
        demand = demands[place]
        best: tuple[float, float, int] | None = None
        for number, path in enumerate(demand.candidates):
            loads = [busy[link] for link in path]
            score = (max(loads, default=0.0), sum(loads), number)
            if best is None or score < best:
                best = score
        if best is None:
            raise ValueError(f"job {demand.job} has a connection without a candidate path")
        chosen[place] = best[2]
        for link in demand.candidates[chosen[place]]:
            busy[link] += demand.load
    return chosen
