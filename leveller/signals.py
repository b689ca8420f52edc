"""The signals that end a command which runs for long, alike for all of them."""

from __future__ import annotations

import signal


def stop_signals() -> tuple[signal.Signals, ...]:
    """Return SIGINT, SIGTERM and SIGHUP; not SIGHUP where it is ignored, which is what nohup asks for."""
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        return signal.SIGINT, signal.SIGTERM
    return signal.SIGINT, signal.SIGTERM, signal.SIGHUP
