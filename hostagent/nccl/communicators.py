"""The communicators of each job, and which connections are theirs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hostagent.flows.connection import FiveTuple
from hostagent.nccl.messages import Collectives, Communicator, Connection, End, Message

MOST = 256
"""Communicators of one job that are kept, at most; further ones are counted."""

MOST_RANKS = 4096
"""Local ranks of all communicators of one job that are kept, at most: they are in every full Report."""

MOST_COLLECTIVES = (1 << 64) - 1
"""Collectives that are counted, at most: a Report's field takes no more."""

MOST_CONNECTIONS = 16_384
"""Connections of one job that are kept, at most."""


class Owner(NamedTuple):
    """Whose a connection is."""

    job: str
    communicator: int


@dataclass(slots=True)
class JobCommunicator:
    """One communicator, as the ranks of this host tell of it."""

    name: str = ""
    ranks: int = 0
    nodes: int = 0
    local_ranks: set[int] = field(default_factory=set)
    collectives: dict[int, int] = field(default_factory=dict)
    """Started so far, by local rank."""


@dataclass(slots=True)
class _Job:
    communicators: dict[int, JobCommunicator] = field(default_factory=dict)
    sockets: dict[FiveTuple, int] = field(default_factory=dict)
    queue_pairs: dict[int, int] = field(default_factory=dict)
    dropped: dict[int, int] = field(default_factory=dict)
    beyond: int = 0

    def takes(self, communicator: JobCommunicator, rank: int) -> bool:
        """Say whether ``rank`` is known in ``communicator``, or may be one more."""
        if rank in communicator.local_ranks or rank in communicator.collectives:
            return True
        kept = sum(len(one.local_ranks | one.collectives.keys()) for one in self.communicators.values())
        self.beyond += kept >= MOST_RANKS
        return kept < MOST_RANKS


class Communicators:
    """What the plugins of all jobs on this host have told."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}
        self._changed: set[str] = set()

    def see(self, pid: int, job: str, message: Message) -> None:
        """Take in a message of process ``pid`` of ``job``."""
        known = self._jobs.setdefault(job, _Job())
        known.dropped[pid] = message.header.dropped
        id_, rank = message.header.communicator, message.header.rank
        communicator = known.communicators.get(id_)
        if communicator is None:
            if isinstance(message, End):
                return
            if len(known.communicators) >= MOST:
                known.beyond += 1
                return
            communicator = known.communicators[id_] = JobCommunicator()
        self._changed.add(job)
        match message:
            case Communicator(_, name, ranks, nodes):
                communicator.name, communicator.ranks, communicator.nodes = name, ranks, nodes
                if known.takes(communicator, rank):
                    communicator.local_ranks.add(rank)
            case Collectives(_, _, started, _, _, _) if known.takes(communicator, rank):
                count = communicator.collectives.get(rank, 0) + started
                communicator.collectives[rank] = min(count, MOST_COLLECTIVES)
            case Connection(_, _, _, queue_pair, _, socket):
                if len(known.sockets) + len(known.queue_pairs) >= MOST_CONNECTIONS:
                    known.beyond += 1
                elif socket is not None:
                    known.sockets[socket] = id_
                else:
                    known.queue_pairs[queue_pair] = id_
            case End():
                communicator.local_ranks.discard(rank)
                communicator.collectives.pop(rank, None)
                if not communicator.local_ranks:
                    self._forget(known, id_)

    def keep(self, jobs: Collection[str]) -> None:
        """Forget all jobs but ``jobs``."""
        for job in self._jobs.keys() - set(jobs):
            del self._jobs[job]
        self._changed &= self._jobs.keys()

    def changed(self) -> dict[str, Mapping[int, JobCommunicator]]:
        """Return the communicators, by id, of the jobs that have told something since the last call."""
        changed, self._changed = self._changed, set()
        return {job: self._jobs[job].communicators for job in changed}

    def of_socket(self, job: str, flow: FiveTuple) -> int:
        """Return the communicator that a socket of ``job`` belongs to; 0 where nobody has told."""
        known = self._jobs.get(job)
        return known.sockets.get(flow, 0) if known else 0

    def of_queue_pair(self, job: str, number: int) -> int:
        """Return the communicator that the local queue pair ``number`` of ``job`` belongs to; 0: not told."""
        known = self._jobs.get(job)
        return known.queue_pairs.get(number, 0) if known else 0

    def lost(self, job: str) -> int:
        """Count what is not known of ``job``: datagrams that were dropped, and what was beyond the limits."""
        known = self._jobs.get(job)
        return known.beyond + sum(known.dropped.values()) if known else 0

    @staticmethod
    def _forget(known: _Job, id_: int) -> None:
        del known.communicators[id_]
        for flow in [flow for flow, of in known.sockets.items() if of == id_]:
            del known.sockets[flow]
        for number in [number for number, of in known.queue_pairs.items() if of == id_]:
            del known.queue_pairs[number]
