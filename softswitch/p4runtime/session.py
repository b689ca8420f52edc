"""One StreamChannel: what waits to be sent to its client, and how it ends."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator

from finsy.proto import p4r

from softswitch.p4runtime.errors import P4Error
from softswitch.p4runtime.packetio import ControllerHeader
from softswitch.p4runtime.roles import RoleConfig

MAX_PENDING = 4096
"""Packet-ins and notifications that may wait for a slow client; what comes beyond is dropped and counted."""


class Session:
    """The server's side of one stream. ``send`` and ``packet_in`` never block; ``messages`` is the stream."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Callable[[], p4r.StreamMessageResponse | None] | None] = (
            queue.SimpleQueue()
        )
        self.error: P4Error | None = None
        """Why the server ended the stream; None when the client did."""
        self.dropped = 0
        """Packet-ins and notifications that found MAX_PENDING others waiting."""

    def send(self, message: p4r.StreamMessageResponse) -> None:
        """Queue a message that must not be lost."""
        self._queue.put(lambda: message)

    def notify(self, message: p4r.StreamMessageResponse) -> None:
        """Queue a best-effort message; it is dropped when the client is too slow."""
        self._offer(lambda: message)

    def packet_in(self, packet: bytes, header: ControllerHeader, role: RoleConfig) -> None:
        """Queue what the pipeline sent to the CPU port; it is decoded in the stream's own thread."""

        def message() -> p4r.StreamMessageResponse | None:
            packet_in = header.unpack(packet)
            return p4r.StreamMessageResponse(packet=packet_in) if role.wants(packet_in.metadata) else None

        self._offer(message)

    def fail(self, error: P4Error) -> None:
        """End the stream with ``error`` once what is queued has been sent."""
        self.error = error
        self.close()

    def close(self) -> None:
        """End the stream once what is queued has been sent."""
        self._queue.put(None)

    def messages(self) -> Iterator[p4r.StreamMessageResponse]:
        """Yield what is queued, as it comes, until the stream is closed."""
        while (make := self._queue.get()) is not None:
            message = make()
            if message is not None:
                yield message

    def _offer(self, make: Callable[[], p4r.StreamMessageResponse | None]) -> None:
        if self._queue.qsize() >= MAX_PENDING:
            self.dropped += 1
        else:
            self._queue.put(make)
