"""Where the switch's log goes: stderr, or, by simple_switch_grpc's options, stdout or rotated files."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import structlog

from leveller.errors import UserError

LEVELS = {"trace": 10, "debug": 10, "info": 20, "warn": 30, "error": 40, "off": 60}
"""simple_switch_grpc's names of the levels."""


@dataclass(frozen=True)
class Destination:
    """What the command line says about the log."""

    console: bool = False
    """stdout instead of stderr."""
    file: str | None = None
    """``FILE.txt``, then ``FILE.1.txt`` for what came before, and so on."""
    max_bytes: int = 5 << 20
    """A file that would become larger is put away."""
    max_files: int = 3
    """So many of those are kept."""


class RotatedFile:
    """A text file that is put away, as ``NAME.1.txt``, before it exceeds ``max_bytes``."""

    def __init__(self, destination: Destination) -> None:
        """Open it, to be appended to. Raises UserError where that cannot be."""
        assert destination.file is not None
        self._destination = destination
        try:
            self._stream = self._open()
        except OSError as error:
            raise UserError(
                f"--log-file: {self._path()} cannot be written ({error.strerror})",
                "name a file in a directory that is there",
            ) from None

    def write(self, text: str) -> int:
        """Append ``text``, in a new file if it is too much for this one."""
        size = len(text.encode())
        if self._size and self._size + size > self._destination.max_bytes:
            self._rotate()
        self._size += size
        return self._stream.write(text)

    def flush(self) -> None:
        """Let others see what was written."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Tell those who would write colours that this is no terminal."""
        return False

    def close(self) -> None:
        """Close it."""
        self._stream.close()

    def _path(self, number: int = 0) -> Path:
        return Path(f"{self._destination.file}{f'.{number}' if number else ''}.txt")

    def _open(self) -> TextIO:
        stream = self._path().open("a", encoding="utf-8")
        self._size = self._path().stat().st_size
        return stream

    def _rotate(self) -> None:
        self._stream.close()
        for number in reversed(range(self._destination.max_files)):
            if self._path(number).exists():
                self._path(number).replace(self._path(number + 1))
        self._path().unlink(missing_ok=True)  # where none is kept
        self._stream = self._open()


def configure(level: str, destination: Destination) -> None:
    """Send every log line of ``level`` and above to ``destination``. Raises UserError."""
    number = LEVELS[level]
    stream: TextIO | RotatedFile = sys.stdout if destination.console else sys.stderr
    if destination.file is not None:
        stream = RotatedFile(destination)
    logging.basicConfig(
        level=number,
        handlers=[logging.StreamHandler(stream)],
        format="%(levelname)s %(name)s: %(message)s",
    )
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(min(number, logging.CRITICAL)),
        logger_factory=structlog.PrintLoggerFactory(stream),  # type: ignore[arg-type]  # it writes and flushes
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S.%f"),
            structlog.dev.ConsoleRenderer(colors=stream.isatty()),
        ],
    )
