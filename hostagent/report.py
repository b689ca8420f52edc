"""Telling the host agent how far training is, in one line, where that is preferred to its reading a log.

::

    import hostagent.report

    hostagent.report.iteration(step)  # after each optimizer step, with the iterations completed so far

It sends one datagram to the agent on this host, never waits, and does nothing where there is no agent: it
cannot break or delay training. Only the standard library is needed, so this one file may also be copied.
Every rank may call it, or only one; a count that goes back is a rollback to a checkpoint.

The agent listens at PATH where it is a systemd unit, else on the abstract Unix socket ``leveller-agent`` of
its network namespace, which any tenant could take before it does. A container needs the agent's
``report_socket`` mounted at PATH, or elsewhere and named by the environment variable LEVELLER_AGENT_SOCKET.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time

PATH = "/run/leveller/report.sock"
"""The agent's socket in the runtime directory of its systemd unit."""

ABSTRACT = "\0leveller-agent"
"""Name of the agent's socket where it is given none and has no such directory."""

VARIABLE = "LEVELLER_AGENT_SOCKET"

RETRY_S = 1.0
"""How long an agent that is not there is left alone."""


class _Reporter:
    """Keeps one process's socket; a forked child makes its own."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._pid = 0
        self._first: int | None = None
        self._later_s = 0.0

    def send(self, completed: int) -> None:
        """Send the count, and the one with which this process began: the agent may have missed that."""
        if self._first is None:
            self._first = completed
        now_s = time.monotonic()
        if now_s < self._later_s:
            return
        try:
            if self._socket is None or self._pid != os.getpid():
                self._socket, self._pid = _connect(), os.getpid()
            self._socket.send(b"1 %d %d" % (self._first, completed))
        except BlockingIOError:
            pass  # the agent has not read the last ones yet: the next will do
        except OSError:
            self.close()
            self._later_s = now_s + RETRY_S

    def close(self) -> None:
        """Forget the socket."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
        self._socket = None


def _connect() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        made.connect(os.environ.get(VARIABLE) or (PATH if os.path.exists(PATH) else ABSTRACT))
    except OSError:
        made.close()
        raise
    return made


_reporter = _Reporter()


def iteration(completed: int) -> None:
    """Tell that ``completed`` iterations have been completed, as the training code counts.

    What is no number is told to nobody, and no error is raised: training goes on.
    """
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        _reporter.send(int(completed))
