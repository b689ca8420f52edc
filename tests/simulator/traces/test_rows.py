from simulator.traces.rows import Report, TraceJob, read_jobs, rows


def test_a_mark_at_the_front_and_columns_that_are_not_asked_for(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("\ufeffa,b,c\n1,2,3\n4\n5,6\n", encoding="utf-8")
    report = Report(path)
    assert [(line, row["a"], row["b"]) for line, row in rows(report, ["a", "b"])] == [
        (2, "1", "2"),
        (4, "5", "6"),
    ]
    assert str(report) == f"{path}: 2 of 3 rows used; skipped: 1 cut short (first: line 3)"


def test_a_quote_that_is_not_closed(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('a,b\n1,2\n"3,4\n5,6\n7,8\n')
    report = Report(path)
    assert [line for line, _ in rows(report, ["a", "b"])] == [2]
    assert report.skipped == {"cut short, with an open quote": [1, 5]}


def test_an_id_that_would_break_a_line(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('name\n"a\x1b[31m"\n"b\nc"\nd\n')
    report = Report(path)
    found = read_jobs(report, ["name"], lambda row: TraceJob(row["name"], 0, 1, 1), "name")
    assert [job.id for job in found] == ["d"]
    assert report.skipped == {"with a name that cannot be printed": [2, 2]}
