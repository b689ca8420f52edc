"""The runs of a sweep: what is kept of each, and the file that keeps them as they end."""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from leveller.errors import UserError
from simulator.fabrics import LingjunFabric
from simulator.grid import Point
from simulator.scenario import Scenario
from simulator.workload import Workload

Figures = Mapping[str, Any]
"""Of a run: what ``leveller sim --json`` has of it, without ``policy`` and ``wall_s``."""


@dataclass(frozen=True, slots=True)
class Row:
    """A point and what came of it."""

    point: Point
    figures: Figures

    def as_json(self) -> dict[str, Any]:
        """Return the row as it is stored and printed."""
        point = self.point
        return {"policy": point.policy, "settings": dict(point.settings), "seed": point.seed, **self.figures}


class Store:
    """The file of a sweep: a header, then a line of JSON per run. It is locked while in use.

    Raises UserError for a file of another scenario or another version of the code, for one that another sweep
    is writing, and for one that cannot be written.
    """

    def __init__(self, path: Path, digest: str) -> None:
        self._path = path
        self._header = json.dumps({"leveller_sweep": digest}) + "\n"
        try:
            if path.exists() and not path.is_file():  # a device may be endless
                raise UserError(f"{path} cannot be written (it is no regular file)", "give --out another")
            # Unbuffered: what could not be written is not tried again when the file is let go.
            self._file: IO[bytes] = path.open("a+b", buffering=0)
        except OSError as error:
            raise UserError(
                f"{path} cannot be written ({error.strerror})", "give --out another file"
            ) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(
                f"{path} is in use by another sweep", "wait for it, or give another file"
            ) from None
        self.rows = self._read()

    def _read(self) -> dict[str, Row]:
        self._file.seek(0)
        text = self._file.read()
        whole = text[: text.rfind(b"\n") + 1]  # what comes after was being written when the sweep was killed
        lines = whole.splitlines(keepends=True)
        if not self._header.encode().startswith(lines[0] if lines else text):
            what = f"{self._path} is not a sweep of this scenario by this version of leveller"
            raise UserError(what, "give --out another file, or remove it")
        self._file.truncate(len(whole))
        if not lines:
            self._write(self._header)
        found = {}
        for number, line in enumerate(lines[1:], 2):
            try:
                fields = json.loads(line)
                point = Point(fields.pop("policy"), fields.pop("settings"), fields.pop("seed"))
                found[point.key] = Row(point, fields)
            except (ValueError, TypeError, LookupError, AttributeError):
                raise UserError(f"{self._path}: line {number} is no run", "remove that line") from None
        return found

    def _write(self, text: str) -> None:
        left = memoryview(text.encode())
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise self._unwritten(error) from None

    def _unwritten(self, error: OSError) -> UserError:
        """Let the file go; return what to raise."""
        self._file.close()
        what = f"{self._path} cannot be written ({error.strerror})"
        return UserError(
            what, "make room there and run it again: the runs it has stay, and it goes on from them"
        )

    def add(self, row: Row) -> None:
        """Keep a row, whatever happens next. Raises UserError where it cannot be written."""
        self._write(json.dumps(row.as_json()) + "\n")
        self.rows[row.point.key] = row

    def close(self, order: Sequence[Point]) -> None:
        """Put the rows in the sweep's order, those of other points after them, and let the file go."""
        rest = dict(self.rows)
        rows = [rest.pop(point.key) for point in order if point.key in rest]
        rows += [rest[key] for key in sorted(rest)]
        new = self._path.with_name(self._path.name + ".new")
        try:
            new.write_text(self._header + "".join(json.dumps(row.as_json()) + "\n" for row in rows))
            new.replace(self._path)
        except OSError as error:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            raise self._unwritten(error) from None
        self._file.close()


def digest(path: Path, scenario: Scenario) -> str:
    """Return what decides a run's result besides its point: the scenario's files and our own sources."""
    files = [path]
    if isinstance(scenario.fabric, LingjunFabric):
        files.append(path.parent / scenario.fabric.topo)
    if scenario.workload is not None and not isinstance(scenario.workload, Workload):
        files += scenario.workload.within(path.parent).files
    return _digest([*_sources(), *files])


def sources_digest() -> str:
    """Return what tells one version of the simulator and the policies from another."""
    return _digest(_sources())


def _sources() -> list[Path]:
    ours = Path(__file__).parent
    return sorted([*ours.rglob("*.py"), *(ours.parent / "controlplane").rglob("policies/*.py")])


def _digest(files: Iterable[Path]) -> str:
    whole = hashlib.sha256()
    for file in files:
        whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()[:16]
