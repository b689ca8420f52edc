import subprocess
import sys
from pathlib import Path

import pytest

LEVELLER = str(Path(sys.executable).with_name("leveller"))


def run(*arguments):
    return subprocess.run([LEVELLER, "agent", *arguments], capture_output=True, text=True, timeout=30)


def test_help_names_what_it_takes():
    done = run("--help")
    assert done.returncode == 0
    assert "--config" in done.stdout
    assert "--verbose" in done.stdout


def test_config_is_needed():
    done = run()
    assert done.returncode == 2
    assert "--config" in done.stderr


@pytest.mark.parametrize(("text", "told"), [(None, "does not exist"), ("[agent", "is not TOML")])
def test_unusable_file_is_one_line(tmp_path, text, told):
    path = tmp_path / "agent.toml"
    if text is not None:
        path.write_text(text)
    done = run("--config", str(path))
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_agent_does_not_load_what_it_does_not_need():
    code = (
        "import sys; import hostagent.agent; "
        "print({'numpy', 'scapy', 'networkx', 'finsy', 'controlplane', 'topo'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip() == "set()"
