"""Standard output, whose disk may be full and whose reader may have gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from leveller.errors import UserError


def open_closed() -> None:
    """Open what a program was started without (``>&-``): what goes there is lost, and nothing fails."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (until the end)


@contextmanager
def standard_output() -> Iterator[None]:
    """Write to ``sys.stdout`` inside; it is flushed at the end.

    Where it fails, what else would go there is lost: UserError, or SystemExit without a word where the
    reader had enough, as `head` has.
    """
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        # Python flushes it once more when it ends, and would complain of its own.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        if isinstance(error, BrokenPipeError):
            sys.exit(1)
        what = f"standard output cannot be written ({error.strerror})"
        raise UserError(what, "make room there, or send it elsewhere") from None
