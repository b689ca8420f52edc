"""The ``leveller`` command, also as ``python -m leveller``; imports nothing before it can be interrupted."""

from __future__ import annotations

import os
import signal
from types import FrameType

INTERRUPTED = 128 + signal.SIGINT
"""What a shell expects of a command that Ctrl-C ended."""


def main() -> None:
    """Run the command; Ctrl-C while it is still being imported ends it at once, quietly."""
    takes_interrupts = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if takes_interrupts:  # no exception: extension modules swallow it, or make an ImportError of it
        signal.signal(signal.SIGINT, _leave)
    from leveller.cli import main as command

    if takes_interrupts:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command()


def _leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
