import subprocess
import sys

import pytest
import typer

from leveller import __version__
from leveller.cli import run
from leveller.errors import UserError

HEAVY = ("finsy", "grpc", "networkx", "scapy", "pyroute2", "mininet", "prometheus_client")


def python(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, timeout=60, check=False)


def test_help_names_every_subcommand():
    result = python("-m", "leveller", "--help")
    assert result.returncode == 0
    for name in ("agent", "controller", "demo", "levels"):
        assert f"  {name} " in result.stdout


def test_version():
    assert python("-m", "leveller", "--version").stdout == f"{__version__}\n"


def test_the_command_line_loads_nothing_heavy():
    code = f"import sys, leveller.cli; print([m for m in {HEAVY} if m in sys.modules])"
    assert python("-c", code).stdout == "[]\n"


def test_a_user_error_is_one_line_and_exit_code_2(capsys):
    app = typer.Typer()

    @app.command()
    def fail() -> None:
        raise UserError("x.toml: port = 99999", "use 1 to 65535")

    with pytest.raises(SystemExit) as caught:
        run(lambda: app(args=[], standalone_mode=False))
    assert caught.value.code == 2
    assert capsys.readouterr().err == "error: x.toml: port = 99999: use 1 to 65535\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["agent"], "error: Missing option '--config': see leveller agent --help\n"),
        (["bogus"], "error: No such command 'bogus': see leveller --help\n"),
        (["levels", "a", "b"], "error: Got unexpected extra argument(s) (b): see leveller levels --help\n"),
        (["sim"], "error: leveller sim is not all of a command: see leveller sim --help\n"),
    ],
)
def test_a_command_line_that_is_none_is_one_line_and_exit_code_2(arguments, message):
    code = "import sys; sys.argv[0] = 'leveller'; from leveller.cli import main; main()"
    result = python("-c", code, *arguments)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", message)


def test_what_a_user_wrote_breaks_no_line():
    assert str(UserError("a\nb\x1b[31m", "mend it")) == "a\\nb\\x1b[31m: mend it"


def test_interrupted_is_exit_code_130_and_not_a_word(capsys):
    def command() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as caught:
        run(command)
    assert caught.value.code == 130
    assert capsys.readouterr().err == ""
