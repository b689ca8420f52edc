"""One digest's messages on their way to the controller: collected, filtered for duplicates, acknowledged."""

from __future__ import annotations

import threading

from finsy.proto import p4r

Values = tuple[int, ...]
Batch = tuple[int, tuple[Values, ...]]
"""A list's id and its messages."""

_MAX_LIST = 1024
"""Messages in a list whose digest asks for no limit."""


class Learner:
    """The buffer and the cache of sent, unacknowledged messages of one digest (spec, DigestEntry).

    ``add`` and ``poll`` return a list that is due, or None. Times are nanoseconds of any monotonic clock.
    Safe to use from several threads.
    """

    def __init__(self, entry: p4r.DigestEntry) -> None:
        self.entry = entry
        """How it is switched on; may be replaced at any time."""
        self._lock = threading.Lock()
        self._buffer: dict[Values, None] = {}
        self._since = 0
        self._sent: dict[int, tuple[int, tuple[Values, ...]]] = {}
        self._cache: set[Values] = set()
        self._next_id = 1

    def add(self, values: Values, now_ns: int) -> Batch | None:
        """Take a message from the data plane, unless it waits already or is not acknowledged yet."""
        config = self.entry.config
        with self._lock:
            self._expire(now_ns)
            if values in self._buffer or values in self._cache:
                return None
            if not self._buffer:
                self._since = now_ns
            self._buffer[values] = None
            if not config.max_timeout_ns or len(self._buffer) >= (config.max_list_size or _MAX_LIST):
                return self._flush(now_ns)
            return None

    def poll(self, now_ns: int) -> Batch | None:
        """Return the list whose oldest message has waited for as long as it may."""
        with self._lock:
            self._expire(now_ns)
            if self._buffer and now_ns - self._since >= self.entry.config.max_timeout_ns:
                return self._flush(now_ns)
            return None

    def acknowledge(self, list_id: int) -> None:
        """Let the messages of a list be sent again when the data plane has them again."""
        with self._lock:
            self._forget(list_id)

    def _flush(self, now_ns: int) -> Batch:
        batch = (self._next_id, tuple(self._buffer))
        self._next_id += 1
        self._buffer.clear()
        if self.entry.config.ack_timeout_ns:
            self._sent[batch[0]] = (now_ns, batch[1])
            self._cache.update(batch[1])
        return batch

    def _expire(self, now_ns: int) -> None:
        timeout = self.entry.config.ack_timeout_ns
        for list_id in [i for i, (sent, _) in self._sent.items() if now_ns - sent >= timeout]:
            self._forget(list_id)

    def _forget(self, list_id: int) -> None:
        _, messages = self._sent.pop(list_id, (0, ()))
        self._cache.difference_update(messages)
