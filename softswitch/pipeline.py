"""A compiled program with its state: what the switch around it configures and feeds packets to."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from softswitch.action_profiles import ActionProfile
from softswitch.externs import Counter, Meter, Register
from softswitch.replication import CloneSessions, MulticastGroups
from softswitch.tables import Table

log = logging.getLogger(__name__)

UNLIMITED = 1 << 30
MAX_PASSES = 1024
"""How often one received packet and its copies may go through the pipeline again.

Beyond it they are dropped.
"""

Packet = bytes | bytearray | memoryview
Transmit = Callable[[int, int, bytes | bytearray], None]


@dataclass(slots=True, frozen=True)
class Digest:
    """A digest the program can send: its fields as (name, bits)."""

    name: str
    fields: tuple[tuple[str, int], ...]


class ValueSet:
    """A parser value set: the values (of the whole select key.

    Its fields concatenated) that take its transition.
    """

    def __init__(self, name: str, width: int) -> None:
        self.name = name
        self.width = width
        self.values: set[int] = set()


class ParserStop(Exception):  # noqa: N818 - no error of ours
    """Parsing ends here with an error (its number in the program)."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class ProgramError(Exception):
    """An ``assert`` or ``assume`` of the program failed.

    bmv2 aborts; ``process`` raises this and the packet is gone.
    """


class Pipeline:
    """A program ready to run.

    All state is found by its full P4 name, the ``preamble.name`` of P4Info: ``tables``, ``action_profiles``,
    ``counters`` (indirect; direct ones are in the entries), ``meters``, ``registers``, ``value_sets``,
    ``digests``. ``source`` is the generated Python.

    ``process(packet, port, now_us)`` runs one packet that came in on ``port`` through ingress and egress and
    calls ``transmit(port, queue, packet)`` for each copy that leaves, in simple_switch's order. It is for one
    thread. The packet is only read, and nothing keeps it afterwards, so it may be a view of a ring.
    ``now_us`` is the switch's clock (microseconds since it started). A packet-out is ``process(header +
    payload, cpu_port, now_us)``; a packet-in is a ``transmit`` to the CPU port.

    The switch sets three callbacks: ``transmit``; ``on_digest(name, values)``, values in order of the
    digest's fields; ``queue_depth(port, queue)``, packets waiting, asked only when a packet's program reads
    it.
    """

    def __init__(self, queues: int) -> None:
        self.queues = queues
        self.source = ""
        self.tables: dict[str, Table] = {}
        self.action_profiles: dict[str, ActionProfile] = {}
        self.counters: dict[str, Counter] = {}
        self.meters: dict[str, Meter] = {}
        self.registers: dict[str, Register] = {}
        self.value_sets: dict[str, ValueSet] = {}
        self.digests: dict[str, Digest] = {}
        self.multicast = MulticastGroups()
        self.clones = CloneSessions()
        self.process: Callable[[Packet, int, int], None] = _no_program
        self.namespace: dict[str, Any] = {}
        self.pending: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self.transmit = _no_transmit
        self.on_digest = _no_digest
        self.queue_depth = _no_depth

    @property
    def transmit(self) -> Transmit:
        """Send a packet out of (port, queue)."""
        return self._transmit

    @transmit.setter
    def transmit(self, function: Transmit) -> None:
        self._transmit = function
        self.namespace["transmit"] = function

    @property
    def on_digest(self) -> Callable[[str, tuple[int, ...]], None]:
        """Take a digest's name and values."""
        return self._on_digest

    @on_digest.setter
    def on_digest(self, function: Callable[[str, tuple[int, ...]], None]) -> None:
        self._on_digest = function
        self.namespace["on_digest"] = function

    @property
    def queue_depth(self) -> Callable[[int, int], int]:
        """Tell how many packets wait in (port, queue)."""
        return self._queue_depth

    @queue_depth.setter
    def queue_depth(self, function: Callable[[int, int], int]) -> None:
        self._queue_depth = function
        self.namespace["queue_depth"] = function

    # what the generated code calls in rare cases

    def later(self, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Run a pass behind the packet in progress."""
        self.pending.append((function, arguments))

    def drain(self) -> None:
        """Run the passes that wait, and those they ask for."""
        for _ in range(MAX_PASSES):
            if not self.pending:
                return
            function, arguments = self.pending.popleft()
            function(*arguments)
        log.error("a packet and its copies went through the pipeline %d times; dropped", MAX_PASSES)
        self.pending.clear()

    def clone_to(
        self,
        packet: Packet,
        port: int,
        now_us: int,
        session: int,
        kind: int,
        queue: int,
        state: tuple[Any, ...],
    ) -> None:
        """Send a clone where its session says; without such a session there is none."""
        found = self.clones.sessions.get(session)
        if found is None:
            return
        limit = found.packet_length_bytes or UNLIMITED
        queue = found.class_of_service or queue
        copy = self.namespace["egress_copy"]
        for replica in found.replicas:
            copy(packet, port, now_us, replica.port, replica.instance, kind, queue, limit, state)

    def no_such_queue(self, queue: int) -> None:
        """Note a packet whose priority has no queue; it is dropped."""
        log.error("priority %d out of range (%d queues), dropping packet", queue, self.queues)


def _no_program(packet: Packet, port: int, now_us: int) -> None:
    del packet, port, now_us


def _no_transmit(port: int, queue: int, packet: Packet) -> None:
    del port, queue, packet


def _no_digest(name: str, values: tuple[int, ...]) -> None:
    del name, values


def _no_depth(port: int, queue: int) -> int:
    del port, queue
    return 0
