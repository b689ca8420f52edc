"""What all tests share: no compiler to wait for, and a summary of the skips that is read because it is short.

Inner loops run as plain Python; each ``test_compiled.py`` has them compiled in a process of its own. numba
looks at its variable more than once, so it is set before anything imports it.

Under nohup SIGHUP goes on being ignored, but by a handler, which the commands under test do not inherit.
"""

import os
import signal
from collections import Counter

import pytest

os.environ.setdefault("NUMBA_DISABLE_JIT", "1")
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once per reason how many tests were skipped."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.getreports("skipped")
    )
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} skipped: {reason}", yellow=True)
