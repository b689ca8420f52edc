from simulator import report
from simulator.compare import Summary
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


def test_a_narrow_terminal_folds_headings_and_cuts_nothing(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "64")
    monkeypatch.setenv("FORCE_COLOR", "1")  # which is how rich is told that it writes to a terminal
    result = Result("fair", [JobResult(0, "job0", 0.5, 1, 0.0, 2.0, 1, 1.0)], 0, 1, 0.0)
    report.print_comparison([Summary("fair", [0, 1], [result, result])])
    text = capsys.readouterr().out
    assert "…" not in text
    assert "0.5000" in text
