"""The packet path: from ports' rings through the pipeline into ports' queues, in one thread."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections import deque
from collections.abc import Callable, Sequence

import structlog

from softswitch.pcap import Capture
from softswitch.pipeline import Pipeline
from softswitch.ports import Port
from softswitch.sender import Sender

_log = structlog.get_logger(__name__)

_BATCH = 32
"""Frames taken from one port before the next has its turn, and before what is staged is sent."""


class Dataplane:
    """Owns the ports. ``run`` is the packet path; the other methods may be called from any thread."""

    def __init__(self, ports: Sequence[Port], *, queues: int, cpu_port: int) -> None:
        self.queues = queues
        self.cpu_port = cpu_port
        self.on_packet_in: Callable[[bytes], None] = lambda _: None
        """Called, in the packet path's thread, with what the pipeline sends to the CPU port."""
        self._ports = {port.number: port for port in ports}
        self._senders: dict[int, list[Sender]] = {port.number: port.senders for port in ports}
        self._staged: list[Sender] = []
        self._pipeline: Pipeline | None = None
        self._injected: deque[bytes] = deque()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.captures: dict[int, Capture] = {}
        """Port number -> where its packets are written down too; to be set before ``run``."""
        self._stopping = False
        self._started_ns = time.monotonic_ns()
        self.unroutable = 0
        """Packets sent to a port that is not there, or to a queue that a port does not have."""
        self.faults = 0
        """Packets on which the pipeline raised an exception."""

    def now_us(self) -> int:
        """Return the switch's clock: microseconds since it started."""
        return (time.monotonic_ns() - self._started_ns) // 1000

    def load(self, pipeline: Pipeline) -> None:
        """Run ``pipeline`` from the next packet on."""
        pipeline.transmit = self._captured_transmit if self.captures else self._transmit
        pipeline.queue_depth = self.queue_depth
        self._pipeline = pipeline

    def inject(self, packet: bytes) -> None:
        """Process ``packet`` as if it had come in on the CPU port, after what was injected before."""
        self._injected.append(packet)
        os.eventfd_write(self._wake, 1)

    def stop(self) -> None:
        """Make ``run`` return soon; safe in a signal handler."""
        self._stopping = True
        os.eventfd_write(self._wake, 1)

    def queue_depth(self, port: int, queue: int) -> int:
        """Return how many packets wait in a port's queue; 0 for a port that is not there."""
        found = self._ports.get(port)
        return found.queue_depth(queue) if found else 0

    def ports_down(self) -> frozenset[int]:
        """Return the numbers of the ports whose link is down now."""
        return frozenset(port.number for port in self._ports.values() if not port.is_up())

    def run(self) -> None:
        """Forward packets until ``stop``."""
        with contextlib.closing(select.epoll()) as poll:
            poll.register(self._wake, select.EPOLLIN)
            ports = {}
            for port in self._ports.values():
                poll.register(port.fileno(), select.EPOLLIN)
                ports[port.fileno()] = port
            while not self._stopping:
                for descriptor, event in poll.poll():
                    if descriptor == self._wake:
                        self._run_injected()
                        continue
                    port = ports[descriptor]
                    if event & select.EPOLLERR:
                        port.clear_error()
                    frames = port.receive(_BATCH)
                    if self.captures:
                        self.captures[port.number].received(frames)
                    self._process(frames, port.number)

    def _process(self, frames: list[bytes], port: int) -> None:
        pipeline = self._pipeline
        if pipeline is None:
            return
        process, started, clock = pipeline.process, self._started_ns, time.monotonic_ns
        for frame in frames:
            try:
                process(frame, port, (clock() - started) // 1000)
            except Exception:  # noqa: BLE001  (no packet may stop the switch, whatever the program makes of it)
                self.faults += 1
                if self.faults == 1:
                    _log.exception(
                        "a packet was lost: the program failed on it", port=port, packet=frame.hex()
                    )
        staged = self._staged
        for sender in staged:
            sender.flush()
        staged.clear()

    def _transmit(self, port: int, queue: int, packet: bytes | bytearray) -> None:
        if port == self.cpu_port:
            self.on_packet_in(bytes(packet))
            return
        try:
            sender = self._senders[port][queue]
        except (KeyError, IndexError):
            self.unroutable += 1
            if self.unroutable == 1:
                _log.warning("a packet was lost: no such port or queue", port=port, queue=queue)
            return
        if sender.put(packet):
            self._staged.append(sender)

    def _captured_transmit(self, port: int, queue: int, packet: bytes | bytearray) -> None:
        if port in self.captures:
            self.captures[port].sent(packet)
        self._transmit(port, queue, packet)

    def _run_injected(self) -> None:
        os.eventfd_read(self._wake)
        for _ in range(len(self._injected)):
            self._process([self._injected.popleft()], self.cpu_port)
