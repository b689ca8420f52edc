"""Which group uses which links, as numbers: made once and kept from one ranking to the next.

`Incidence` is a sequence of groups, so that it goes wherever a policy takes groups. A policy that gets a list
makes one of it; who ranks the same groups again and again makes it once and passes it each time. Then a
ranking costs what the ranking costs. That, and the last levels, is all that an incidence remembers: what a
policy answers does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, islice
from operator import attrgetter, getitem, gt
from typing import TYPE_CHECKING, overload

from controlplane.model import Group, Link, Path
from controlplane.policies.interface import Scope
from controlplane.policies.merging import ROWS, merge, settle, tell_parts
from controlplane.policies.tables import Table, Tables

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_DIFFERENT = 2**18
"""Places for the names of links; twice as many as there may be to be told apart by them."""

_SCATTER = 7046029254386353131
"""Multiplied by it, numbers near each other come to lie far apart (Knuth's multiplicative hashing)."""


class Incidence(Sequence[Group]):
    """Groups, those of one job next to each other, and the links that they use. Immutable.

    ``jobs`` are numbered by their places in that tuple, groups by their own. There are ``size`` links; the
    ``shared`` ones, which several jobs use, have the first numbers. Group i uses
    ``links[starts[i]:starts[i + 1]]``, job j has the groups from ``job_groups[j]`` to ``job_groups[j + 1]``.

    ``tables`` runs its loops (default: what suits the size). ``names`` saves hashing the links where somebody
    has a number for each: those along the paths of the groups, one after another. The groups then have to be
    by job already; ValueError where they are not.
    """

    def __init__(
        self,
        groups: Iterable[Group],
        tables: Tables | None = None,
        names: Sequence[int] | npt.NDArray[np.int64] | None = None,
    ) -> None:
        rows = tuple(groups)
        jobs = list(map(attrgetter("job"), rows))
        self.jobs = tuple(dict.fromkeys(jobs))
        self.number = {job: number for number, job in enumerate(self.jobs)}
        owner = list(map(self.number.__getitem__, jobs))
        if any(map(gt, owner, islice(owner, 1, None))):
            if names is not None:
                raise ValueError("the groups of a job are not next to each other")
            rows = tuple(rows[row] for row in sorted(range(len(rows)), key=owner.__getitem__))
            owner.sort()
        paths = list(map(attrgetter("path"), rows))
        starts = list(accumulate(map(len, paths), initial=0))
        self._groups = rows
        self.tables = tables = tables or Tables.for_size(starts[-1])
        self.starts: Table = tables.of(starts, len(starts))
        owners = tables.of(owner, len(owner))
        self.job_groups = tables.ranges(owners, len(self.jobs))
        self.links, self.size = _numbered(paths, self.starts, tables, names)
        spare = tables.filled(self.size, -1), tables.filled(self.size)
        self.shared: int = tables.run(share)(self.starts, self.links, owners, *spare)
        self._nodes: dict[Scope, Nodes] = {}
        self._only: dict[frozenset[str], Incidence] = {}

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

    @cached_property
    def link(self) -> tuple[Link, ...]:
        """The links by number."""
        paths = list(map(attrgetter("path"), self))
        return tuple(_once(self.links, self.size, paths, self.starts, self.tables))

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

    Job j has the nodes from ``job_nodes[j]`` to ``job_nodes[j + 1]``. Node i uses of the shared links
    ``links[starts[i]:starts[i + 1]]``, each once: the others connect nothing. Entry e of the incidence
    belongs to node ``node_of[e]`` (None: to its group). ``part`` tells each node's component by one of its
    links (-1: it contends with nobody), where ``total`` has the number of links; ``parts`` of them have
    several. ``last`` is the last ranking; the rest is what `controlplane.policies.merging` notes.
    """

    def __init__(self, incidence: Incidence, scope: Scope) -> None:
        tables, shared = incidence.tables, incidence.shared
        self.incidence = incidence
        self.node_of: Table | None = None
        starts, links, self.job_nodes = incidence.starts, incidence.links, incidence.job_groups
        if scope is not Scope.FABRIC:
            starts, links, self.job_nodes, self.node_of = _divided(incidence, scope)
        self.starts, kept = tables.filled(len(starts)), tables.filled(len(links))
        self.part, self.total = tables.filled(len(self), -1), tables.filled(shared)
        count = tables.run(keep)(starts, links, shared, self.starts, kept, self.part)
        self.links, self.following, self.base = kept[:count], tables.filled(count), tables.filled(len(self))
        self.per_link, self.merged = tables.rows(ROWS, shared), tables.filled(len(incidence.jobs))
        # What all jobs make, in any order, are the parts.
        self.parts = 1
        self.merge(tables.counting(len(incidence.jobs)), tables.filled(len(self)))
        self.parts = tables.run(tell_parts)(self.starts, self.links, self.per_link, self.part, self.total)
        self.last: Ranked | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1

    def merge(self, order: Table, member: Table) -> None:
        """See `controlplane.policies.merging.merge`."""
        relation = (self.job_nodes, self.starts, self.links, self.part, self.total, self.parts)
        self.incidence.tables.run(merge)(
            order, *relation, self.merged, self.per_link, self.following, self.base, member
        )

    def settle(self, order: Table, fresh: bool, top: int, level: Table) -> bool:
        """See `controlplane.policies.merging.settle`."""
        known = (self.job_nodes, self.part, self.merged, self.per_link, self.base)
        return bool(self.incidence.tables.run(settle)(order, *known, fresh, top, level))


class NodeLevels(Mapping[str, Mapping[Link, int]]):
    """One level for each of ``nodes`` as `controlplane.model.Levels`: read one by one, never all laid out."""

    def __init__(self, nodes: Nodes, level: Table) -> None:
        self.level = level
        self.nodes = nodes

    def __getitem__(self, group: str) -> dict[Link, int]:
        incidence, node_of = self.nodes.incidence, self.nodes.node_of
        place = incidence.place[group]
        path = incidence[place].path
        if node_of is None:
            return dict.fromkeys(path, int(self.level[place]))
        first = incidence.starts[place]
        return {link: int(self.level[node_of[entry]]) for entry, link in enumerate(path, first)}

    def __iter__(self) -> Iterator[str]:
        return iter(self.nodes.incidence.place)

    def __len__(self) -> int:
        return len(self.nodes.incidence)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A ranking: the jobs' numbers, the first first; K; and the levels."""

    order: Sequence[int]
    count: int
    levels: NodeLevels


class _Numbers(dict[object, int]):
    """Numbers things as they are first asked for."""

    def __missing__(self, thing: object) -> int:
        self[thing] = number = len(self)
        return number


def _numbered(
    paths: Sequence[Path], starts: Table, tables: Tables, names: Sequence[int] | npt.NDArray[np.int64] | None
) -> tuple[Table, int]:
    """Return the number of every link of ``paths``, one path after the other, and how many links there are.

    Links that have the same of the ``names`` (default: that are equal) are one.
    """
    numbers, size = _Numbers(), int(starts[-1])
    if tables.compiled:
        # To hash a link takes far longer than to take its address, and most are the same objects anyway.
        import numpy as np

        known: npt.NDArray[np.int64]
        if names is None:
            known = np.fromiter(map(id, chain.from_iterable(paths)), np.int64, size)
        else:
            known = np.asarray(names, np.int64)
        links = tables.filled(size)
        room = min(2 << size.bit_length(), _DIFFERENT)
        spare = np.zeros(room, np.int64), tables.filled(room)
        count = tables.run(tell_apart)(known, *spare, links)
        if count >= 0 and names is not None:
            return links, count
        if count >= 0:
            same = list(map(numbers.__getitem__, _once(links, count, paths, starts, tables)))
            return (tables.of(same, count)[links] if len(numbers) < count else links), len(numbers)
    things = chain.from_iterable(paths) if names is None else names
    return tables.of(map(numbers.__getitem__, things), size), len(numbers)


def _once(links: Table, count: int, paths: Sequence[Path], starts: Table, tables: Tables) -> Iterator[Link]:
    """Return each of the ``count`` links of ``paths``, of which ``links`` are the numbers, by number."""
    first = tables.filled(count)
    tables.run(appear)(links, first)
    rows = tables.row_of(first, starts)
    hops = (entry - starts[row] for entry, row in zip(first, rows, strict=True))
    return map(getitem, map(paths.__getitem__, rows), hops)


def _divided(incidence: Incidence, scope: Scope) -> tuple[Table, Table, Table, Table]:
    """Return what groups are under finer scopes: nodes' starts and links, each job's nodes, each entry's."""
    tables, starts, links = incidence.tables, incidence.starts, incidence.links
    over = tables.of(_reach(incidence, scope), incidence.size)
    node_of, job_of = tables.filled(len(links)), tables.filled(len(links))
    count = tables.run(split)(starts, links, incidence.job_groups, over, node_of, job_of)
    starts = tables.counting(len(links) + 1)
    if count < len(links):
        starts, order = tables.transposed(starts, node_of, count)
        links = tables.taken(links, order)
    return starts, links, tables.ranges(job_of[:count], len(incidence.jobs)), node_of


def _reach(incidence: Incidence, scope: Scope) -> Iterable[int]:
    """Return for each link the number of what a level reaches over it: its switch, or it alone."""
    if scope is Scope.PORT:
        return range(incidence.size)
    number = _Numbers()
    return [number[link.switch] for link in incidence.link]


def tell_apart(names: Table, keys: Table, values: Table, number: Table) -> int:
    """Give numbers to ``names`` as they appear; return how many there are, -1: too many for the table.

    ``number`` gets the number of each. The hash table of ``keys`` (zeros, some power of two of them) and
    ``values`` is at most half full.
    """
    found = 0
    for entry in range(len(names)):
        key = names[entry] + 1
        at = (key * _SCATTER >> 40) & (len(keys) - 1)
        while keys[at] != key and keys[at] != 0:
            at = (at + 1) & (len(keys) - 1)
        if keys[at] == 0:
            if found * 2 >= len(keys):
                return -1
            keys[at] = key
            values[at] = found
            found += 1
        number[entry] = values[at]
    return found


def appear(links: Table, first: Table) -> None:
    """Tell for each of ``links`` where it appears ``first``."""
    for entry in range(len(links) - 1, -1, -1):
        first[links[entry]] = entry


def share(starts: Table, links: Table, owner: Table, user: Table, number: Table) -> int:
    """Give the first numbers to those of ``links`` that several owners' rows use; return how many.

    Each kind keeps its order. Row r is of ``owner[r]``. ``user`` has -1 and ``number`` 0 for each link.
    """
    shared = 0
    for row in range(len(starts) - 1):
        for at in range(starts[row], starts[row + 1]):
            link = links[at]
            if user[link] < 0:
                user[link] = owner[row]
            elif user[link] != owner[row] and not number[link]:
                number[link] = 1
                shared += 1
    these, others = 0, shared
    for link in range(len(number)):
        if number[link]:
            number[link] = these
            these += 1
        else:
            number[link] = others
            others += 1
    for at in range(len(links)):
        links[at] = number[links[at]]
    return shared


def split(starts: Table, links: Table, job_rows: Table, over: Table, node_of: Table, job_of: Table) -> int:
    """Make a node of what each row has of links with the same ``over``; return how many nodes there are.

    ``node_of`` gets each entry's node, ``job_of`` each node's job.
    """
    nodes = 0
    for job in range(len(job_rows) - 1):
        for row in range(job_rows[job], job_rows[job + 1]):
            for at in range(starts[row], starts[row + 1]):
                node = -1
                for before in range(starts[row], at):
                    if over[links[before]] == over[links[at]]:
                        node = node_of[before]
                if node < 0:
                    node = nodes
                    job_of[node] = job
                    nodes += 1
                node_of[at] = node
    return nodes


def keep(starts: Table, links: Table, shared: int, kept_starts: Table, kept: Table, part: Table) -> int:
    """Leave out of each row what is no ``shared`` link, or is there already; return how many are left.

    ``part`` is 0 for a row that has any.
    """
    found = 0
    for row in range(len(starts) - 1):
        kept_starts[row] = found
        for at in range(starts[row], starts[row + 1]):
            new = links[at] < shared
            for before in range(kept_starts[row], found):
                if kept[before] == links[at]:
                    new = False
            if new:
                kept[found] = links[at]
                found += 1
                part[row] = 0
    kept_starts[len(starts) - 1] = found
    return found
