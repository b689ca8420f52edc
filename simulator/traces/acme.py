"""Shanghai AI Laboratory's Acme traces (InternLM/AcmeTrace): trace_seren.csv and trace_kalos.csv.

Read are job_id, gpu_num, type, submit_time, start_time and end_time. The other columns are not: `duration`
is end minus start in Seren, and counts from the submission in Kalos. No placement, bytes or topology.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from simulator.traces.rows import BadRowError, Report, Trace, TraceJob, read_jobs

COLUMNS = ("job_id", "gpu_num", "type", "submit_time", "start_time", "end_time")


@lru_cache(maxsize=4)
def read(path: Path) -> Trace:
    """Return the trace's jobs that ran on GPUs; ``model`` is its type. Raises UserError for another file."""
    report = Report(path)
    return Trace(read_jobs(report, COLUMNS, _job, "job_id"), (report,))


def _job(row: Mapping[str, str]) -> TraceJob:
    name = row["job_id"].strip()
    if not name:
        raise BadRowError("without job_id")
    try:
        gpus = float(row["gpu_num"])
    except ValueError:
        raise BadRowError("with a gpu_num that is no number") from None
    if gpus < 0 or not gpus.is_integer():
        raise BadRowError("with a gpu_num that is no number")
    if gpus == 0:
        raise BadRowError("without GPUs")
    submit, start, end = (_time(row, column) for column in ("submit_time", "start_time", "end_time"))
    if start is None:
        raise BadRowError("never ran")
    if submit is not None and start < submit:
        raise BadRowError("started before submitted")
    if end is None:
        raise BadRowError("still running at the end")
    if end <= start:
        raise BadRowError("ended before or as they started")
    return TraceJob(name, start, end - start, int(gpus), row["type"].strip() or "unknown")


def _time(row: Mapping[str, str], column: str) -> float | None:
    text = row[column].strip()
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadRowError(f"with a {column} that is no time") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
