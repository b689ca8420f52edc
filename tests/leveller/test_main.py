"""``leveller`` is interrupted while it is still being imported: no traceback, exit code 130."""

import signal
import subprocess
import sys

INTERRUPT = (
    "import os, signal, sys\n"
    "class Interrupt:\n"
    "    def find_spec(self, name, path=None, target=None):\n"
    "        if name == 'typer':\n"
    "            os.kill(os.getpid(), signal.SIGINT)\n"
    "sys.meta_path.insert(0, Interrupt())\n"
)
"""Ctrl-C just when `leveller.cli` imports the first of what takes long."""


def leveller(before: str, ignored: bool = False) -> subprocess.CompletedProcess[str]:
    code = f"{before}from leveller.__main__ import main; sys.argv = ['leveller', '--version']; main()"
    what = signal.SIG_IGN if ignored else signal.default_int_handler
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, what),
    )  # fmt: skip


def test_ctrl_c_while_importing_is_exit_code_130_and_not_a_word():
    result = leveller(INTERRUPT)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


def test_who_ignores_ctrl_c_goes_on_doing_so():
    assert leveller(INTERRUPT, ignored=True).returncode == 0


def test_afterwards_ctrl_c_is_an_exception_again():
    tell = "lambda: print(signal.getsignal(signal.SIGINT).__name__)"
    check = f"import atexit, signal, sys\natexit.register({tell})\n"
    assert leveller(check).stdout.splitlines()[-1] == "default_int_handler"


def test_python_m_leveller_is_the_same():
    result = subprocess.run(
        [sys.executable, "-m", "leveller", "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert result.stdout.strip()
