"""Alibaba's Lingjun 2023 trace (alibaba/alibaba-lingjun-dataset-2023): job.csv and worker.csv.

It has no link speeds, bytes or iteration times. Of job.csv's columns job_name (the key), model,
gmt_job_submitted, gmt_job_running, gmt_job_stopped and gmt_job_finished are read: a job ends when it
finished, or else when it was stopped. Of worker.csv's: job_name, host_ip and RES, JSON whose "nvidia.com/gpu"
counts the worker's GPUs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from importlib import resources
from pathlib import Path

from simulator.traces.rows import BadRowError, Report, Trace, TraceJob, read_jobs, rows

TIME = "%Y/%m/%d %H:%M"
JOB_COLUMNS = (
    *("job_name", "model"),
    *("gmt_job_submitted", "gmt_job_running", "gmt_job_stopped", "gmt_job_finished"),
)
DIGITS = re.compile(r"[0-9]{1,9}")
WORKER_COLUMNS = ("job_name", "host_ip", "RES")


@dataclass(slots=True)
class _Workers:
    gpus: int = 0
    hosts: dict[str, None] = field(default_factory=dict)
    located: bool = True
    broken: bool = False


@lru_cache(maxsize=4)
def read(job_csv: Path, worker_csv: Path) -> Trace:
    """Return the trace's jobs that ran on GPUs. Raises UserError for files that are no such trace.

    A job whose workers' rows cannot all be read is skipped: its size is not known. ``hosts`` are given where
    all of a job's workers with GPUs say theirs.
    """
    of_workers, of_jobs = Report(worker_csv), Report(job_csv)
    workers = _read_workers(of_workers)
    jobs = read_jobs(of_jobs, JOB_COLUMNS, lambda row: _job(row, workers), "job_name")
    return Trace(jobs, (of_jobs, of_workers))


def _read_workers(report: Report) -> dict[str, _Workers]:
    found: dict[str, _Workers] = {}
    for line, row in rows(report, WORKER_COLUMNS):
        name = row["job_name"].strip()
        if not name:
            report.skip(line, "without job_name")
            continue
        own = found.setdefault(name, _Workers())
        try:
            count = _gpus(row["RES"])
        except BadRowError as reason:
            report.skip(line, str(reason))
            own.broken = True
            continue
        own.gpus += count
        host = row["host_ip"].strip()
        if count and host:
            own.hosts[host] = None
        elif count:
            own.located = False
    return found


def _gpus(text: str) -> int:
    try:
        count = json.loads(text).get("nvidia.com/gpu", 0)
    except (ValueError, AttributeError, RecursionError):
        count = None
    # A number, or the text of one; not a truth value, which Python takes for a number, and not half a GPU.
    if type(count) is int and count >= 0:
        return count
    if isinstance(count, str) and DIGITS.fullmatch(count):
        return int(count)
    raise BadRowError("with a RES that does not say how many GPUs")


def _job(row: Mapping[str, str], workers: Mapping[str, _Workers]) -> TraceJob:
    name = row["job_name"].strip()
    if not name:
        raise BadRowError("without job_name")
    running, submitted = _time(row, "gmt_job_running"), _time(row, "gmt_job_submitted")
    end = _time(row, "gmt_job_finished") or _time(row, "gmt_job_stopped")
    if running is None:
        raise BadRowError("never ran")
    if submitted is not None and running < submitted:
        raise BadRowError("running before submitted")
    if end is None:
        raise BadRowError("still running at the end")
    if end < running:
        raise BadRowError("ended before running")
    own = workers.get(name)
    if own is None:
        raise BadRowError("without workers")
    if own.broken:
        raise BadRowError("with workers that cannot be read")
    if own.gpus == 0:
        raise BadRowError("without GPUs")
    hosts = tuple(own.hosts) if own.located else ()
    # Times are whole minutes: a job that ended in the minute it began in ran for half of one.
    return TraceJob(
        name, running, max(end - running, 30.0), own.gpus, row["model"].strip() or "unknown", hosts
    )


def _time(row: Mapping[str, str], column: str) -> float | None:
    text = row[column].strip()
    if not text:
        return None
    try:
        return datetime.strptime(text, TIME).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise BadRowError(f"with a {column} that is no time") from None


@lru_cache(maxsize=1)
def peak() -> Trace:
    """Return the package's 39 real jobs: those of at least 8 GPUs that ran at once at the trace's peak."""
    with resources.as_file(resources.files("simulator") / "data" / "lingjun" / "peak_jobs.csv") as path:
        report = Report(path)
        columns = ("job_name", "model", "gmt_job_running", "gmt_job_finished", "total_gpu")
        jobs = []
        for _, row in rows(report, columns):
            start, end = _time(row, "gmt_job_running"), _time(row, "gmt_job_finished")
            assert start is not None
            assert end is not None
            jobs.append(TraceJob(row["job_name"], start, end - start, int(row["total_gpu"]), row["model"]))
    return Trace(sorted(jobs, key=lambda job: (job.start, job.id)), (report,))
