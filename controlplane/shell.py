"""``leveller shell``: p4runtime-shell on one switch, read-only, in a virtual environment of its own.

Its pins (a protobuf of 2022) clash with ours. The environment is made once, from requirements that are pinned
with their hashes and shipped with this package, in the user's cache; in a checkout that has one beside its
own (`make test` makes it), that one is used.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import NoReturn

from controlplane.check_switch import ask
from controlplane.findings import Finding
from controlplane.switch_config import SwitchSection
from leveller.errors import UserError

REQUIREMENTS = "p4runtime-shell.txt"
_MARK = "installed"
"""The file that says that an environment is whole."""

_ABANDONED_S = 3600.0

_ANSWER_S = 5.0
"""How long the switch may take for each answer."""

Say = Callable[[str], None]


def start(switch: SwitchSection, say: Say) -> NoReturn:
    """Become p4runtime-shell on ``switch``.

    Raises UserError where that is of no use, or the shell's environment cannot be made.
    """
    _see_that_it_answers(switch)
    with resources.as_file(resources.files("controlplane") / REQUIREMENTS) as requirements:
        python = environment(_cache(), requirements, say)
    with resources.as_file(resources.files("controlplane") / "shell_start.py") as script:
        os.execv(python, [str(python), str(script), json.dumps(settings(switch))])


def _see_that_it_answers(switch: SwitchSection) -> None:
    """Say in one line what the shell itself says in many, or not at all."""
    if switch.protocol == "openflow":
        raise UserError(f"{switch.name} speaks OpenFlow, not P4Runtime", "use ovs-ofctl dump-flows on it")
    asked = asyncio.run(ask(switch, _ANSWER_S))
    for said in asked.said:
        if isinstance(said, Finding):
            raise UserError(f"{switch.name}: {said.what}", said.mend)
    if asked.info is None:
        raise UserError(
            f"{switch.name}: device {switch.device_id} has no pipeline that a controller has pushed",
            "start the controller first, or mend switches.device_id",
        )


def settings(switch: SwitchSection) -> dict[str, object]:
    """Return what ``shell_start.py`` is told."""
    files = {name: getattr(switch, name) for name in ("ca", "cert", "key")}
    return {
        "device_id": switch.device_id,
        "address": switch.address,
        "server_name": switch.server_name,
        **{name: None if path is None else str(path) for name, path in files.items()},
    }


def environment(cache: Path, requirements: Path, say: Say) -> Path:
    """Return the Python of an environment that has ``requirements``; made in ``cache`` where there is none.

    Raises UserError where it cannot be made; nothing half-made is left.
    """
    beside = Path(sys.prefix).parent / ".venv-p4runtime-shell"
    if (beside / _MARK).exists():
        return beside / "bin" / "python"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    name = hashlib.sha256(requirements.read_bytes() + version.encode()).hexdigest()[:16]
    folder = cache / f"p4runtime-shell-{name}"
    if not (folder / _MARK).exists():
        _make(folder, requirements, say)
    return folder / "bin" / "python"


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "leveller"


def _make(folder: Path, requirements: Path, say: Say) -> None:
    """Make the environment beside its place, and put it there when it is whole."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        made = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise UserError(
            f"{error.filename} cannot be written to ({error.strerror})",
            "set XDG_CACHE_HOME to a folder of yours",
        ) from None
    with _removed_unless_whole(made):
        wanted = requirements.read_text(encoding="utf-8").count("==")
        say(f"making p4runtime-shell's own environment in {folder}, once ...")
        _run([sys.executable, "-m", "venv", str(made)], say, 0)
        pip = [str(made / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
        _run([*pip, "--progress-bar", "off", "--require-hashes", "-r", str(requirements)], say, wanted)
        (made / _MARK).touch()
        with contextlib.suppress(OSError):  # another one was quicker
            made.rename(folder)


def _sweep(folder: Path) -> None:
    """Remove what was left half-made by a process that was killed, and nobody can still be at."""
    for left in folder.parent.glob(f"{folder.name}.*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(left, ignore_errors=True)


def _run(command: list[str], say: Say, wanted: int) -> None:
    """Run ``command``; say which of ``wanted`` packages it is at."""
    last, count = "", 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            last = line.strip() or last
            if line.startswith(("Collecting ", "Processing ")):  # by name, or as a file
                count += 1
                say(f"  {count} of {wanted}: {line.split()[1].rpartition('/')[2]}")
    if process.returncode:
        raise UserError(
            f"p4runtime-shell cannot be installed ({last})",
            "see that pip reaches its index, with the Python that this runs with; then try again",
        )


@contextlib.contextmanager
def _removed_unless_whole(folder: Path) -> Iterator[None]:
    try:
        yield
    finally:
        if folder.exists():  # else it is where it belongs
            shutil.rmtree(folder, ignore_errors=True)
