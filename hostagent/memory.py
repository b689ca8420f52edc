"""What the agent keeps over a restart of its own: how far each job is, and how far its logs have been read.

Reading the logs again would do, were it not for what a rotation has taken away by then. The file is a help
and no more: without it, with a damaged one, or after a reboot (its times and processes are another boot's),
the agent begins as if for the first time.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import structlog
from pydantic import AfterValidator, Field, ValidationError

from hostagent.logs.counter import CounterState
from hostagent.logs.tail import Bookmark
from leveller.config import Section

_LARGEST = 64 << 20
"""Bytes of a file that is still read."""


def _encodable(text: str) -> str:
    text.encode()  # raises UnicodeEncodeError, a ValueError
    return text


Whole = Annotated[int, Field(ge=0, lt=1 << 63)]
Text = Annotated[str, AfterValidator(_encodable)]
"""What can be written: surrogates (bytes that are no text) cannot."""


class LogMemory(Section):
    """A log of a job."""

    kind: Text
    place: Text
    bookmark: Bookmark
    format: Text = ""
    """Name of its format; empty as long as no iteration was seen in it."""
    parser: tuple[Whole, ...] = ()
    """What its lines' parser remembers of earlier ones."""
    leads: bool = False
    """It is the one that counts."""


class JobMemory(Section):
    """A job. Making one raises ValidationError where it cannot be written, or not be read again."""

    id: Text
    started_ns: Whole
    processes: tuple[tuple[Whole, Whole, Whole], ...]
    """Pid, start and parent of each of its processes: by them it is known again."""
    counter: CounterState
    logs: tuple[LogMemory, ...] = ()
    told: bool = False
    """Its code tells of its progress itself."""


class _File(Section):
    version: Literal[1] = 1
    boot: str
    jobs: tuple[JobMemory, ...]


class Memory:
    """The jobs, in a file."""

    def __init__(self, path: Path, proc: str = "/proc") -> None:
        """``proc`` is where the kernel tells which boot this is."""
        self._path = path
        self._boot = _boot(proc)
        self._kept = ""
        self._failed = False
        self._log = structlog.get_logger().bind(state_file=str(path))

    def recall(self) -> tuple[JobMemory, ...]:
        """Return the jobs as they were kept; none where there is nothing of use."""
        try:
            with self._path.open("rb") as file:
                text = file.read(_LARGEST)
            kept = _File.model_validate_json(text)
        except FileNotFoundError:
            return ()
        except OSError as error:
            self._log.warning("what was known of jobs cannot be read", reason=error.strerror or str(error))
            return ()
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the whole"
            self._log.warning("what was known of jobs is damaged, and not used", field=where)
            return ()
        return kept.jobs if kept.boot == self._boot else ()

    def keep(self, jobs: Sequence[JobMemory]) -> None:
        """Keep ``jobs``. What cannot be written is told once, and no error."""
        text = _File(boot=self._boot, jobs=tuple(jobs)).model_dump_json()
        if text == self._kept:
            return
        new = self._path.with_name(f"{self._path.name}.new")
        try:
            # Nobody else is to read it: it has tenants' job ids. No fsync: no use after a crash of the host.
            with open(
                os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb"
            ) as file:
                file.write(text.encode())
            new.replace(self._path)
        except OSError as error:
            with contextlib.suppress(OSError):
                new.unlink()
            if not self._failed:
                self._failed = True
                self._log.warning(
                    "what is known of jobs cannot be kept over a restart", reason=error.strerror or str(error)
                )
            return
        self._kept, self._failed = text, False


def _boot(proc: str) -> str:
    try:
        return Path(proc, "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
