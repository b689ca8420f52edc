"""Rows of a trace's CSV file, and an account of those that could not be used."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from leveller.errors import UserError


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A job of a trace. ``start`` is in seconds of any one clock; ``hosts`` are empty where not known."""

    id: str
    start: float
    duration: float
    gpus: int
    model: str = "unknown"
    hosts: tuple[str, ...] = ()


@dataclass(slots=True)
class Report:
    """How many of a file's rows were used, and why the others were not: reason -> [rows, first line]."""

    file: Path
    rows: int = 0
    skipped: dict[str, list[int]] = field(default_factory=dict)

    def skip(self, line: int, reason: str) -> None:
        """Count a row that is not used."""
        self.skipped.setdefault(reason, [0, line])[0] += 1

    @property
    def used(self) -> int:
        """Rows that were used."""
        return self.rows - sum(count for count, _ in self.skipped.values())

    def __str__(self) -> str:
        reasons = [f"{count} {reason} (first: line {line})" for reason, (count, line) in self.skipped.items()]
        skipped = f"; skipped: {', '.join(reasons)}" if reasons else ""
        return f"{self.file}: {self.used} of {self.rows} rows used{skipped}"


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace's usable jobs by start, and the accounts of its files."""

    jobs: Sequence[TraceJob]
    reports: Sequence[Report]


class BadRowError(Exception):
    """A row that cannot be used; the text is the reason, the same for all rows of a kind."""


def rows(report: Report, columns: Sequence[str]) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield (line number, row) for every row of ``report.file``, counting them there.

    Rows that are too short are skipped, and counted as such. Raises UserError for a file that cannot be read
    or lacks one of ``columns``.
    """
    path = report.file
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                raise UserError(f"{path} lacks the column {missing[0]}", f"it needs {', '.join(columns)}")
            before = reader.line_num
            for row in reader:
                report.rows += 1
                several, before = reader.line_num - before > 1, reader.line_num
                if any(row[name] is None for name in columns):
                    # A quote that nobody closes takes all the lines that follow for its own.
                    report.skip(reader.line_num, "cut short, with an open quote" if several else "cut short")
                else:
                    yield reader.line_num, row
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})", "give the trace's CSV file") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} is no CSV file ({error})", "give the trace's CSV file") from None


def read_jobs(
    report: Report, columns: Sequence[str], job_of: Callable[[Mapping[str, str]], TraceJob], id_column: str
) -> list[TraceJob]:
    """Return the job that ``job_of`` makes of each row, by start.

    Rows that it refuses with BadRowError, or that repeat an id, are skipped and counted.
    """
    jobs: dict[str, TraceJob] = {}
    for line, row in rows(report, columns):
        try:
            job = job_of(row)
            if not job.id.isprintable():
                raise BadRowError(f"with a {id_column} that cannot be printed")
            if job.id in jobs:
                raise BadRowError(f"repeat a {id_column}")
        except BadRowError as reason:
            report.skip(line, str(reason))
        else:
            jobs[job.id] = job
    return sorted(jobs.values(), key=lambda job: (job.start, job.id))
