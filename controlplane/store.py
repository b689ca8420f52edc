"""What has to survive a restart, in one SQLite file: jobs, and the numbers handed out to groups and slots.

Write-ahead logging: a controller that is killed at any point leaves the last complete state. Nothing here is
shared between controllers. Times are Unix nanoseconds, since a monotonic clock does not survive a reboot.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path as FilePath
from types import TracebackType
from typing import NamedTuple, Self

from controlplane.groups import GroupKey
from controlplane.model import FiveTuple, Link, Path
from leveller.errors import UserError

VERSION = 1
_APPLICATION_ID = 0x4C56_4C52  # "LVLR"

_SCHEMA = f"""
BEGIN;
CREATE TABLE jobs (id TEXT PRIMARY KEY, t0_unix_ns INTEGER NOT NULL, iterations INTEGER NOT NULL,
                   t_ideal_ns INTEGER) STRICT, WITHOUT ROWID;
CREATE TABLE groups (job TEXT NOT NULL, path TEXT NOT NULL, number INTEGER NOT NULL UNIQUE,
                     PRIMARY KEY (job, path)) STRICT, WITHOUT ROWID;
CREATE TABLE slots (flow TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE) STRICT, WITHOUT ROWID;
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {VERSION};
COMMIT;
"""


class SavedJob(NamedTuple):
    """A job as it was when last saved."""

    t0_unix_ns: int
    iterations: int
    t_ideal_ns: int | None


@dataclass(frozen=True)
class Saved:
    """The whole content of a store."""

    jobs: Mapping[str, SavedJob] = field(default_factory=dict)
    groups: Mapping[GroupKey, int] = field(default_factory=dict)
    slots: Mapping[FiveTuple, int] = field(default_factory=dict)


class Store:
    """The store file, open. Saving writes only what differs from what was saved last, as one transaction."""

    def __init__(self, path: FilePath) -> None:
        """Open or create ``path``. Raises UserError where that cannot be, or it is something else's file."""
        self._path = path
        # Not Path.exists, which raises for a directory that may not be looked into.
        self._is_new = not os.path.exists(path)
        try:
            self._database = sqlite3.connect(path, isolation_level=None, timeout=1.0)
            # One controller per store: whoever opens it keeps it until it closes. This must come before WAL
            # mode: after it, several may open a store that has its tables already, and then none can write.
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._prepare()
            self.saved = self._read()
        except sqlite3.OperationalError as error:
            self._discard_new()
            mend = (
                "another controller uses it; stop that one or give this one its own controller.store"
                if "locked" in str(error)
                else "controller.store must name a file in a directory that can be written to and has room"
            )
            raise UserError(f"store {path} cannot be opened ({error})", mend) from None
        except (sqlite3.DatabaseError, ValueError, TypeError) as error:
            raise UserError(f"store {path} is damaged ({error})", "move it away; it is made anew") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()
        if isinstance(error, UserError):  # the controller could not even start
            self._discard_new()

    def save(self, new: Saved) -> None:
        """Make ``new`` the content of the store. sqlite3.Error: it could not be; the old content stays."""
        old = self.saved
        if new == old:
            return
        with self._transaction():
            self._replace(
                "jobs",
                {(job,): tuple(state) for job, state in old.jobs.items()},
                {(job,): tuple(state) for job, state in new.jobs.items()},
            )
            self._replace(
                "groups",
                {(job, _path_text(path)): (number,) for (job, path), number in old.groups.items()},
                {(job, _path_text(path)): (number,) for (job, path), number in new.groups.items()},
            )
            self._replace(
                "slots",
                {(_flow_text(flow),): (slot,) for flow, slot in old.slots.items()},
                {(_flow_text(flow),): (slot,) for flow, slot in new.slots.items()},
            )
        self.saved = new

    def _discard_new(self) -> None:
        """Remove a store that was not there before: what did not start leaves nothing behind."""
        if self._is_new:
            for part in (self._path, f"{self._path}-wal"):
                with contextlib.suppress(OSError, ValueError):
                    os.unlink(part)

    def _prepare(self) -> None:
        (application,) = self._database.execute("PRAGMA application_id").fetchone()
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        (tables,) = self._database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if tables == 0:
            self._database.executescript(_SCHEMA)
        elif application != _APPLICATION_ID:
            raise UserError(
                f"{self._path} is not a store of the controller", "give controller.store another file"
            )
        elif version != VERSION:
            raise UserError(
                f"store {self._path} has format {version}, this controller reads {VERSION}",
                "move it away, or use the controller that wrote it",
            )

    def _read(self) -> Saved:
        run = self._database.execute
        return Saved(
            jobs={
                row[0]: SavedJob(*row[1:])
                for row in run("SELECT id, t0_unix_ns, iterations, t_ideal_ns FROM jobs")
            },
            groups={
                (job, _path_of(path)): number
                for job, path, number in run("SELECT job, path, number FROM groups")
            },
            slots={_flow_of(flow): number for flow, number in run("SELECT flow, number FROM slots")},
        )

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            self._database.execute("ROLLBACK")
            raise

    def _replace(
        self,
        table: str,
        old: Mapping[tuple[str, ...], tuple[int | None, ...]],
        new: Mapping[tuple[str, ...], tuple[int | None, ...]],
    ) -> None:
        keys = {"jobs": ("id",), "groups": ("job", "path"), "slots": ("flow",)}[table]
        # Deletions first: a number that moves to another holder must be free before it is written again.
        changed = [key for key, values in old.items() if new.get(key) != values]
        where = " AND ".join(f"{key} = ?" for key in keys)
        self._database.executemany(f"DELETE FROM {table} WHERE {where}", changed)  # noqa: S608
        rows = [key + values for key, values in new.items() if old.get(key) != values]
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608


def _path_text(path: Path) -> str:
    return json.dumps([list(link) for link in path])


def _path_of(text: str) -> Path:
    return tuple(Link(str(switch), int(port)) for switch, port in json.loads(text))


def _flow_text(flow: FiveTuple) -> str:
    return json.dumps([str(flow.source), str(flow.destination), *flow[2:]])


def _flow_of(text: str) -> FiveTuple:
    source, destination, *numbers = json.loads(text)
    return FiveTuple(ip_address(source), ip_address(destination), *numbers)
