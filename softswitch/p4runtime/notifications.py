"""What is looked at now and then: idle entries, digests that have waited, and links that are down."""

from __future__ import annotations

import threading
import time

from finsy.proto import p4r

from softswitch.p4runtime import selection
from softswitch.p4runtime.device import Device, Forwarding
from softswitch.p4runtime.program import Program

_INTERVAL = 0.02
"""Seconds between two looks at the digests that wait."""
_SCAN_INTERVAL_US = 250_000
"""Microseconds between two scans of the tables with idle timeout, and of the ports' links."""


class Notifier:
    """A thread that looks, now and then, for what is due. ``start`` it and ``stop`` it.

    It also tells the device which links are down: the packet path must not wait for the device's locks.
    """

    def __init__(self, device: Device, forwarding: Forwarding) -> None:
        self._device = device
        self._forwarding = forwarding
        self._stopping = threading.Event()
        self._next_scan_us = 0
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)

    def start(self) -> None:
        """Start looking."""
        self._thread.start()

    def stop(self) -> None:
        """Stop looking; returns when the thread has ended."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(_INTERVAL):
            now_us = self._forwarding.now_us()
            scan = now_us >= self._next_scan_us
            if scan:
                self._next_scan_us = now_us + _SCAN_INTERVAL_US
                self._device.set_ports_down(self._forwarding.ports_down())
            program = self._device.running
            if program is not None:
                self._poll(program, now_us, scan=scan)

    def _poll(self, program: Program, now_us: int, *, scan: bool) -> None:
        for digest_id, learner in list(program.digests.items()):
            batch = learner.poll(now_us * 1000)
            if batch is not None:
                self._device.send_digest(program, digest_id, batch)
        if scan:
            for table in program.info.tables.values():
                if table.idle_timeout:
                    message = idle_entries(program, table.id, now_us)
                    if message.table_entry:
                        self._device.notify(
                            table.id, p4r.StreamMessageResponse(idle_timeout_notification=message)
                        )


def idle_entries(program: Program, table_id: int, now_us: int) -> p4r.IdleTimeoutNotification:
    """Return the entries of a table that no packet has hit for their timeout, and start their time again."""
    message = p4r.IdleTimeoutNotification(timestamp=time.time_ns())
    table = program.info.table(table_id)
    for entry in program.pipeline.tables[table.name].entries():
        if entry.idle_timeout_ns and now_us * 1000 - entry.last_hit_ns >= entry.idle_timeout_ns:
            entry.last_hit_us = now_us
            idle = selection.key(selection.Found(table, entry, is_default=False, is_const=False))
            idle.metadata = entry.metadata
            idle.controller_metadata = entry.controller_metadata
            idle.idle_timeout_ns = entry.idle_timeout_ns
            message.table_entry.append(idle)
    return message
