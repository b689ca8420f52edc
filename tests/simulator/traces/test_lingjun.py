from pathlib import Path

import pytest

from leveller.errors import UserError
from simulator.traces.lingjun import peak, read

DATA = Path(__file__).parents[2] / "data"
JOBS, WORKERS = DATA / "lingjun_job.csv", DATA / "lingjun_worker.csv"


def test_jobs_from_both_files():
    found = {job.id: job for job in read(JOBS, WORKERS).jobs}
    assert list(found) == ["made-a", "made-b", "made-short"]
    a, b, short = found.values()
    assert (a.gpus, a.duration, a.model, a.hosts) == (16, 3600, "llama", ("hostA", "hostC"))
    # Stopped, not finished; one of its workers does not say where it ran.
    assert (b.gpus, b.start - a.start, b.duration, b.hosts) == (16, 240, 1800, ())
    assert short.duration == 30


def test_every_row_that_is_left_out_is_counted_with_its_reason():
    jobs, workers = read(JOBS, WORKERS).reports
    assert (jobs.rows, jobs.used) == (14, 3)
    assert jobs.skipped == {
        "running before submitted": [1, 4],
        "never ran": [1, 5],
        "still running at the end": [1, 6],
        "ended before running": [1, 7],
        "with a gmt_job_running that is no time": [1, 8],
        "without job_name": [1, 9],
        "repeat a job_name": [1, 10],
        "without GPUs": [1, 11],
        "without workers": [1, 12],
        "with workers that cannot be read": [1, 13],
        "cut short": [1, 15],
    }
    assert str(workers) == (
        f"{WORKERS}: 7 of 9 rows used; skipped: "
        "1 with a RES that does not say how many GPUs (first: line 8), 1 without job_name (first: line 9)"
    )


@pytest.mark.parametrize(
    "count",
    ['"-1"', '"many"', "[]", "-1", "8.5", "true", "null", "NaN", "Infinity", "1e400", '"' + "9" * 20 + '"'],
)
def test_a_count_of_gpus_that_is_none(tmp_path, count):
    path = tmp_path / "worker.csv"
    quoted = f'{{"nvidia.com/gpu": {count}}}'.replace('"', '""')
    path.write_text(f'job_name,host_ip,RES\nmade-a,hostA,"{quoted}"\n')
    jobs, workers = read(JOBS, path).reports
    assert workers.used == 0
    assert jobs.skipped["with workers that cannot be read"] == [2, 2]  # made-a stands there twice


@pytest.mark.parametrize("text", ["", "8", "null", "[" * 100_000, "{nvidia"])
def test_resources_that_are_none(tmp_path, text):
    path = tmp_path / "worker.csv"
    path.write_text(f"job_name,host_ip,RES\nmade-a,hostA,{text}\n")
    assert read(JOBS, path).reports[1].skipped == {"with a RES that does not say how many GPUs": [1, 2]}


def test_files_that_are_no_such_trace(tmp_path):
    with pytest.raises(UserError, match="lacks the column job_name: it needs job_name, model"):
        read(DATA / "lingjun_topo.csv", WORKERS)
    with pytest.raises(UserError, match="cannot be read"):
        read(JOBS, tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="is no CSV file"):
        read(JOBS, tmp_path / "binary.csv")


def test_the_real_peak():
    jobs = peak().jobs
    assert (len(jobs), sum(job.gpus for job in jobs)) == (39, 1208)
    assert sorted({job.gpus for job in jobs}) == [8, 16, 32, 40, 48, 64, 80]
    # All of them ran at 05:16 on 28 July 2023 (a job that began in that minute is one of them).
    assert max(job.start for job in jobs) <= min(job.start + job.duration for job in jobs)
