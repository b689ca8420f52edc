"""Compile the P4 program: ``python -m p4src.build_program``, or ``make p4``. Needs ``p4c-bm2-ss`` on PATH.

The result depends on the sources and the compiler's version alone, so it can be checked in and compared:
where in which file a thing was written is taken out of p4c's JSON. ``manifest.json`` tells what was compiled,
and by what.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from leveller.errors import UserError
from p4src import ROOT

TARGET = "v1model"
COMPILER = "p4c-bm2-ss"
_CONSTANT = re.compile(r"^const\s+bit<\d+>\s+(\w+)\s*=\s*(\w+)\s*;", re.MULTILINE)


def source_hashes(root: Path = ROOT) -> dict[str, str]:
    """Return the SHA-256 of every source of the v1model program by its path in ``p4src``."""
    paths = [*root.glob("shared/*.p4"), *root.glob(f"{TARGET}/*.p4")]
    return {path.relative_to(root).as_posix(): _sha256(path.read_bytes()) for path in sorted(paths)}


def constants(root: Path = ROOT) -> dict[str, int]:
    """Return every ``const bit<N>`` of the shared constants and sizes, as the sources write them."""
    text = "".join(
        (root / "shared" / name).read_text(encoding="utf-8") for name in ("constants.p4", "sizes.p4")
    )
    return {name: int(value, 0) for name, value in _CONSTANT.findall(text)}


def compile_program(output: Path, root: Path = ROOT) -> None:
    """Compile ``root`` into ``leveller.json``, ``leveller.p4info.txtpb`` and ``manifest.json`` in ``output``.

    Raises UserError when there is no compiler, or it reports an error or a warning; ``output`` is then as it
    was before.
    """
    compiler = shutil.which(COMPILER)
    if compiler is None:
        raise UserError(
            f"{COMPILER} is not on PATH", "install p4c (the compiled program is checked in without it)"
        )
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    with tempfile.TemporaryDirectory() as scratch:
        config, p4info = Path(scratch, "leveller.json"), Path(scratch, "leveller.p4info.txtpb")
        done = subprocess.run(
            [compiler, "--std", "p4-16", "--Werror", "--p4runtime-files", str(p4info), "-o", str(config),
             f"{TARGET}/leveller.p4"],
            cwd=root, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise UserError(f"the program does not compile:\n{done.stderr.strip()}", "mend the source")
        files = {
            config.name: json.dumps(_without_places(json.loads(config.read_text())), indent=1) + "\n",
            p4info.name: p4info.read_text(),
        }
    manifest = {
        "target": TARGET,
        "compiler": f"{COMPILER} {_version(version.stdout + version.stderr)}",
        "sources": source_hashes(root),
        "outputs": {name: _sha256(text.encode()) for name, text in files.items()},
        "constants": constants(root),
    }
    files["manifest.json"] = json.dumps(manifest, indent=2) + "\n"
    output.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (output / name).write_text(text, encoding="utf-8")


def _without_places(node: Any) -> Any:  # noqa: ANN401 (any JSON)
    """Drop where in which file each thing was written, and the program's file name."""
    if isinstance(node, dict):
        return {
            key: "leveller" if key == "program" else _without_places(value)
            for key, value in node.items()
            if key != "source_info"
        }
    if isinstance(node, list):
        return [_without_places(value) for value in node]
    return node


def _version(text: str) -> str:
    found = re.search(r"Version (\S+)", text)
    return found[1] if found else text.strip()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def main() -> int:
    """Compile into ``build/v1model``; 0 when that worked, 2 with one message when it did not."""
    output = ROOT / "build" / TARGET
    try:
        compile_program(output)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 (a build tool's own output)
        return 2
    print(f"compiled into {output}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
