from simulator import report
from simulator.results import JobResult, Result


def test_long_lists_are_cut(capsys):
    jobs = [JobResult(n, f"job{n}", 0.5, 1, 0.0, 2.0, 1, 1.0) for n in range(report.SHOWN_JOBS + 2)]
    report.print_result(Result("fair", jobs, 4, 1, 0.0))
    text = capsys.readouterr().out
    assert "... and 2 more jobs" in text
    assert "4 jobs had no time for an iteration" in text


def test_progress_is_silent_where_nobody_looks(capsys):
    with report.progress(10, 2) as bar:
        bar("fair")(5.0)
    assert capsys.readouterr().err == ""
