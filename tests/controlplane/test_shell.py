"""``leveller shell``: p4runtime-shell on real switches, and how its environment is made."""

import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from controlplane import shell
from controlplane.southbound import Fabric, Result, Target
from leveller.errors import UserError
from tests.controlplane.southbound.helpers import PROGRAM, connected

LEVELLER = Path(sys.executable).parent / "leveller"
BESIDE = Path(sys.prefix).parent / ".venv-p4runtime-shell"


@pytest.fixture
def config(tmp_path):
    def write(target):
        path = tmp_path / "leveller.toml"
        path.write_text(
            f'[[switches]]\nname = "S1"\naddress = "{target.address}"\ndevice_id = {target.device_id}\n'
            "node_id = 1\nports = [1, 2, 3]\nhost_ports = [1, 2]\n"
        )
        return path

    return write


async def session(config, *lines):
    """Pipe lines into a shell; return what it said."""
    process = await asyncio.create_subprocess_exec(
        LEVELLER, "shell", "S1", "--config", config,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = await asyncio.wait_for(process.communicate("\n".join((*lines, "exit", "")).encode()), 60)
    return process.returncode, out.decode(), err.decode()


@pytest.mark.skipif(not (BESIDE / "installed").exists(), reason="there is no .venv-p4runtime-shell")
async def test_reads_beside_a_controller_and_cannot_write(kind, switch, config, desire, onlooker):
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": desire(5, 3)})
        code, out, err = await session(
            config(switch.target()),
            "levels = []",
            'table_entry["group_level"].read(lambda entry: levels.append(entry))',
            'print("groups", len(levels))',
            'entry = table_entry["active_bank"](action="set_bank", is_default=True)',
            'entry.action["bank"] = "0"',
            "entry.modify()",
            'print("still", "here")',
        )
        assert code == 0, err
        assert "groups 2" in out
        assert "this shell is read-only; levels are the controller's to write" in out
        assert "still here" in out
        assert err.startswith("read-only, in a role of its own" if kind == "softswitch" else "read-only\n")
        assert (fabric.status()["S1"].primary, fabric.status()["S1"].sessions) == (True, 1)
        assert (await fabric.apply({"S1": desire(1, 2)}))["S1"].result is Result.APPLIED
        assert await onlooker(switch).levels() == {1: 1, 2: 2}


@pytest.mark.skipif(not (BESIDE / "installed").exists(), reason="there is no .venv-p4runtime-shell")
async def test_it_does_not_become_primary_where_there_is_none(switch, config, desire):
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
    shell_open = asyncio.create_task(session(config(switch.target()), "import time", "time.sleep(3)"))
    await asyncio.sleep(2)
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        assert (fabric.status()["S1"].primary, fabric.status()["S1"].pipeline_pushes) == (True, 0)
        assert (await fabric.apply({"S1": desire(2)}))["S1"].result is Result.APPLIED
        code, _, err = await shell_open
        assert code == 0, err
        assert fabric.status()["S1"].primary


def test_a_switch_that_is_not_configured(config):
    done = subprocess.run(
        [LEVELLER, "shell", "S9", "--config", config(Target("S1", "127.0.0.1:1", 1))],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.endswith("leveller.toml has no switch 'S9': give one of: S1\n")


# -- the environment


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """As if nothing stood beside our own environment."""
    monkeypatch.setattr(shell.sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.setattr(shell.sys, "executable", sys.executable)
    return tmp_path / "cache"


@pytest.fixture
def wheel(tmp_path):
    """A package that is nobody's, and its pinned and hashed requirement."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    name = "lonely-1.0-py3-none-any.whl"
    with zipfile.ZipFile(folder / name, "w") as archive:
        info = "lonely-1.0.dist-info"
        archive.writestr("lonely.py", "ANSWER = 42\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: lonely\nVersion: 1.0\n")
        tags = "Root-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\n{tags}")
        archive.writestr(f"{info}/RECORD", "")
    return folder / name


def requirement(tmp_path, wheel, digest=None):
    digest = digest or hashlib.sha256(wheel.read_bytes()).hexdigest()
    path = tmp_path / "requirements.txt"
    path.write_text(f"--no-index\n--find-links {wheel.parent}\nlonely==1.0 --hash=sha256:{digest}\n")
    return path


def test_the_environment_is_made_once_and_shows_its_progress(alone, tmp_path, wheel):
    said = []
    python = shell.environment(alone, requirement(tmp_path, wheel), said.append)
    done = subprocess.run(
        [python, "-c", "import lonely; print(lonely.ANSWER)"], capture_output=True, check=True
    )
    assert done.stdout == b"42\n"
    assert said[0].startswith("making p4runtime-shell's own environment in ")
    assert said[1].startswith("  1 of 1: lonely")
    again = shell.environment(alone, requirement(tmp_path, wheel), said.append)
    assert (again, len(said)) == (python, 2)


def test_what_cannot_be_made_leaves_nothing_behind(alone, tmp_path, wheel):
    with pytest.raises(UserError, match="p4runtime-shell cannot be installed"):
        shell.environment(alone, requirement(tmp_path, wheel, "0" * 64), lambda line: None)
    assert list(alone.iterdir()) == []


def test_what_was_left_half_made_is_removed_in_time(alone, tmp_path, wheel):
    python = shell.environment(alone, requirement(tmp_path, wheel), lambda line: None)
    folder = python.parents[1]
    for age_s, name in ((7200, "old"), (60, "new")):
        left = alone / f"{folder.name}.{name}"
        left.mkdir()
        os.utime(left, (time.time() - age_s,) * 2)
    shutil.rmtree(folder)
    shell.environment(alone, requirement(tmp_path, wheel), lambda line: None)
    assert {path.name for path in alone.iterdir()} == {folder.name, f"{folder.name}.new"}


def test_a_cache_that_cannot_be_written_to(alone, tmp_path, wheel):
    alone.write_text("a file")
    with pytest.raises(UserError, match=r"cannot be written to .*: set XDG_CACHE_HOME to a folder of yours"):
        shell.environment(alone, requirement(tmp_path, wheel), lambda line: None)


def test_the_requirements_are_pinned_with_hashes():
    text = (Path(shell.__file__).parent / shell.REQUIREMENTS).read_text()
    pins = [line for line in text.splitlines() if "==" in line]
    assert len(pins) > 10
    assert text.count("--hash=sha256:") >= len(pins)
    assert any(line.startswith("p4runtime-shell==") for line in pins)


async def test_a_switch_that_is_not_there_hangs_or_runs_nothing_yet(switches, config):
    switch = switches()
    code, out, err = await session(config(switch.target()))
    assert (code, out) == (2, "")
    assert err == (
        "error: S1: device 1 has no pipeline that a controller has pushed: start the controller first, or"
        " mend switches.device_id\n"
    )
    switch.kill()
    code, out, err = await session(config(switch.target()))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"error: S1: {switch.address} cannot be reached" in err
