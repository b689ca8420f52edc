"""Which group uses which links, as numbers: made once and kept from one ranking to the next.

`Incidence` is a sequence of groups, so that it goes wherever a policy takes groups. A policy that gets a list
makes one of it; who ranks the same groups again and again makes it once and passes it each time. Then a
ranking costs what the ranking costs, and where only some jobs changed places since the last one with the same
incidence, it costs about what these change. That is all that an incidence remembers: what a policy
answers does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain, islice
from operator import attrgetter, gt
from typing import TYPE_CHECKING, overload

from controlplane.model import Group, Link, Path
from controlplane.policies.components import SAMPLES, join, name, pick_rest, pick_some
from controlplane.policies.interface import Scope
from controlplane.policies.tables import Table, Tables

if TYPE_CHECKING:
    from controlplane.policies.pruning import Pruned


NEVER = 2**30
"""A step that does not come."""

_DIFFERENT = 2**18
"""Places for the addresses of links; twice as many as there may be to be told apart by them."""


_SCATTER = 7046029254386353131
"""Multiplied by it, numbers near each other come to lie far apart (Knuth's multiplicative hashing)."""


class Incidence(Sequence[Group]):
    """Groups, those of one job next to each other, and the links that they use. Immutable.

    ``jobs`` are numbered by their places in that tuple, groups by their own, links as they first appear.
    Group i is of job ``owner[i]`` and uses ``links[starts[i]:starts[i + 1]]``. Of each job the links, of each
    link the jobs, are kept in the same way. ``tables`` runs its loops (default: what suits the size).
    """

    def __init__(self, groups: Iterable[Group], tables: Tables | None = None) -> None:
        rows = tuple(groups)
        names = list(map(attrgetter("job"), rows))
        self.jobs = tuple(dict.fromkeys(names))
        self.number = {job: number for number, job in enumerate(self.jobs)}
        owner = list(map(self.number.__getitem__, names))
        if any(map(gt, owner, islice(owner, 1, None))):
            rows = tuple(rows[row] for row in sorted(range(len(rows)), key=owner.__getitem__))
            owner.sort()
        paths = list(map(attrgetter("path"), rows))
        starts = list(accumulate(map(len, paths), initial=0))
        size = starts[-1]
        self._groups = rows
        self.tables = tables = tables or Tables.for_size(size)
        self.starts: Table = tables.of(starts, len(starts))
        self.owner: Table = tables.of(owner, len(owner))
        self.links, self.link = _numbered(paths, self.starts, tables)
        self.job_starts: Table = tables.filled(len(self.jobs) + 1)
        job_links = tables.filled(size)
        pairs = tables.run(meet)(
            self.starts, self.links, self.owner, tables.filled(len(self.link), -1), self.job_starts, job_links
        )
        self.job_links: Table = job_links[:pairs].copy()
        self.link_starts, self.link_jobs = tables.transposed(self.job_starts, self.job_links, len(self.link))
        self._nodes: dict[Scope, Nodes] = {}
        self._only: dict[frozenset[str], Incidence] = {}

    @cached_property
    def most(self) -> int:
        """The most jobs that any link has."""
        ends = islice(self.link_starts, 1, None)
        return max((int(end - start) for start, end in zip(self.link_starts, ends, strict=False)), default=0)

    @overload
    def __getitem__(self, place: int) -> Group: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Group]: ...

    def __getitem__(self, place: int | slice) -> Group | Sequence[Group]:
        return self._groups[place]

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups)

    @cached_property
    def place(self) -> dict[str, int]:
        """Each group's number, by its id."""
        return dict(zip(map(attrgetter("id"), self._groups), range(len(self)), strict=True))

    def only(self, jobs: frozenset[str]) -> Incidence:
        """Return the groups of ``jobs`` alone; the same object again while nobody asks for others."""
        if jobs not in self._only:
            while len(self._only) > 1:
                del self._only[next(iter(self._only))]
            self._only[jobs] = Incidence((group for group in self._groups if group.job in jobs), self.tables)
        return self._only[jobs]

    def nodes(self, scope: Scope) -> Nodes:
        """Return the nodes of the contention graph under ``scope``."""
        if scope not in self._nodes:
            self._nodes[scope] = Nodes(self, scope)
        return self._nodes[scope]


class Nodes:
    """The nodes of the contention graph: groups, or what of each is on one switch or one link.

    Node i is of job ``owner[i]`` and uses ``links[starts[i]:starts[i + 1]]``; of each link the nodes are kept
    in the same way. Entry e of the incidence belongs to node ``node_of[e]`` (None: to its group). While no
    job is gone, ``label`` is the component of each link (-1: it has only one job) and ``alone_from`` tells
    links of one job from the others (`NEVER`). ``last`` is the last ranking.
    """

    def __init__(self, incidence: Incidence, scope: Scope) -> None:
        tables, size = incidence.tables, len(incidence.link)
        self.incidence = incidence
        self.node_of: Table | None = None
        self.starts, self.links, self.owner = incidence.starts, incidence.links, incidence.owner
        if scope is not Scope.FABRIC:
            entries = len(incidence.links)
            part = tables.of(_parts(incidence.link, scope), size)
            node_of, row_of = tables.filled(entries), tables.filled(entries)
            count = tables.run(split)(incidence.starts, incidence.links, part, node_of, row_of)
            self.starts = tables.counting(entries + 1)
            if count < entries:
                self.starts, order = tables.transposed(self.starts, node_of, count)
                self.links = tables.taken(incidence.links, order)
            self.owner = tables.taken(incidence.owner, row_of[:count])
            self.node_of = node_of
        self.link_starts, self.link_nodes = tables.transposed(self.starts, self.links, size)
        self._joint = tables.filled(size)
        contended = tables.filled(size)
        self.alone_from: Table = tables.filled(size)
        count = tables.run(describe)(
            self.starts, self.links, incidence.link_starts, self._joint, contended, self.alone_from
        )
        self.label: Table = tables.filled(size, -1)
        floor, position = tables.filled(size, -1), tables.filled(len(incidence.jobs))
        self.connect(contended, count, tables.filled(size), floor, position, self.label)
        self.last: Pruned | None = None

    def __len__(self) -> int:
        return len(self.owner)

    def connect(
        self, todo: Table, count: int, within: Table, floor: Table, position: Table, label: Table
    ) -> None:
        """Label the components of the first ``count`` links of ``todo``, each by its smallest link.

        A node connects its links while its job comes after their ``floor``. Links of different components
        ``within`` are known to stay apart.

        As in Afforest (Sutton et al., IPDPS 2018) a few nodes of each link are joined first, which mostly
        makes one component of what is one, then those of the links that are still outside of the largest.
        """
        tables, size = self.incidence.tables, len(self.incidence.link)
        parent, picked = tables.filled(size, -1), tables.filled(max(len(self), SAMPLES * count))
        alive = (floor, position, self.starts)
        on_link = (self.owner, self.link_starts, self.link_nodes, self._joint, parent)
        found = tables.run(pick_some)(todo, count, *alive, *on_link, picked)
        if found:
            tables.run(join)(picked, found, self.starts, self.links, parent)
            spare = (tables.filled(size), tables.filled(size), picked)
            found = tables.run(pick_rest)(todo, count, within, *alive, self.links, *on_link, *spare)
            tables.run(join)(picked, found, self.starts, self.links, parent)
        tables.run(name)(todo, count, parent, label)


class NodeLevels(Mapping[str, Mapping[Link, int]]):
    """One level for each of ``nodes`` as `controlplane.model.Levels`: read one by one, never all laid out."""

    def __init__(self, nodes: Nodes, level: Table) -> None:
        self.level = level
        self._nodes = nodes

    def __getitem__(self, group: str) -> dict[Link, int]:
        incidence, node_of = self._nodes.incidence, self._nodes.node_of
        place = incidence.place[group]
        path = incidence[place].path
        if node_of is None:
            return dict.fromkeys(path, int(self.level[place]))
        first = incidence.starts[place]
        return {link: int(self.level[node_of[entry]]) for entry, link in enumerate(path, first)}

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes.incidence.place)

    def __len__(self) -> int:
        return len(self._nodes.incidence)


class _Numbers(dict[Link, int]):
    """Numbers links as they are first asked for."""

    def __missing__(self, link: Link) -> int:
        self[link] = number = len(self)
        return number


def _numbered(paths: Sequence[Path], starts: Table, tables: Tables) -> tuple[Table, tuple[Link, ...]]:
    """Return the number of every link of ``paths``, one path after the other, and the links by number."""
    numbers, size = _Numbers(), int(starts[-1])
    if tables.compiled:
        # To hash a link takes far longer than to take its address, and most are the same objects anyway.
        import numpy as np

        ids = np.fromiter(map(id, chain.from_iterable(paths)), np.int64, size)
        links, first = tables.filled(size), tables.filled(size)
        spare = np.zeros(_DIFFERENT, np.int64), tables.filled(_DIFFERENT)
        count = tables.run(tell_apart)(ids, *spare, links, first)
        if count >= 0:
            rows = starts.searchsorted(first[:count], side="right") - 1
            places = zip(rows.tolist(), (first[:count] - starts[rows]).tolist(), strict=True)
            same = tables.of([numbers[paths[row][hop]] for row, hop in places], count)
            return same[links], tuple(numbers)
    links = tables.of(map(numbers.__getitem__, chain.from_iterable(paths)), size)
    return links, tuple(numbers)


def _parts(links: Sequence[Link], scope: Scope) -> Iterable[int]:
    """Return for each link the number of what a level reaches over it: its switch, or it alone."""
    if scope is Scope.PORT:
        return range(len(links))
    number: dict[str, int] = {}
    return [number.setdefault(link.switch, len(number)) for link in links]


def tell_apart(ids: Table, keys: Table, values: Table, number: Table, first: Table) -> int:
    """Give numbers to ``ids`` as they appear; return how many there are, -1: too many for the table.

    ``number`` gets the number of each, ``first`` where each number appears first. The hash table of ``keys``
    (zeros, some power of two of them) and ``values`` is at most half full.
    """
    found = 0
    for entry in range(len(ids)):
        at = ((ids[entry] >> 4) * _SCATTER >> 40) & (len(keys) - 1)
        while keys[at] != ids[entry] and keys[at] != 0:
            at = (at + 1) & (len(keys) - 1)
        if keys[at] == 0:
            if found * 2 >= len(keys):
                return -1
            keys[at] = ids[entry]
            values[at] = found
            first[found] = entry
            found += 1
        number[entry] = values[at]
    return found


def meet(
    starts: Table, links: Table, owner: Table, latest: Table, job_starts: Table, job_links: Table
) -> int:
    """Find which links each job uses, each once; return how many pairs there are.

    Rows are sorted by ``owner``. ``latest`` has -1 for each link.
    """
    found = 0
    for row in range(len(starts) - 1):
        job = owner[row]
        for at in range(starts[row], starts[row + 1]):
            link = links[at]
            if latest[link] != job:
                latest[link] = job
                job_links[found] = link
                found += 1
        job_starts[job + 1] = found
    return found


def split(starts: Table, links: Table, part: Table, node_of: Table, row_of: Table) -> int:
    """Make a node of what each row has in one ``part`` (of each link); return how many nodes there are.

    ``node_of`` gets each entry's node, ``row_of`` each node's row.
    """
    nodes = 0
    for row in range(len(starts) - 1):
        for at in range(starts[row], starts[row + 1]):
            node = -1
            for before in range(starts[row], at):
                if part[links[before]] == part[links[at]]:
                    node = node_of[before]
            if node < 0:
                node = nodes
                row_of[node] = row
                nodes += 1
            node_of[at] = node
    return nodes


def describe(
    starts: Table, links: Table, job_starts: Table, joint: Table, contended: Table, alone_from: Table
) -> int:
    """Mark in ``joint`` the links of nodes that have several; list in ``contended`` those of several jobs.

    ``job_starts`` is that of the links' jobs. ``alone_from`` is 0 where a link has one job, `NEVER` where it
    has several. Return how many links are contended.
    """
    for node in range(len(starts) - 1):
        if starts[node + 1] - starts[node] > 1:
            for at in range(starts[node], starts[node + 1]):
                joint[links[at]] = 1
    count = 0
    for link in range(len(joint)):
        if job_starts[link + 1] - job_starts[link] > 1:
            contended[count] = link
            count += 1
            alone_from[link] = NEVER
    return count
