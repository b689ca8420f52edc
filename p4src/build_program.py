"""Compile the P4 programs: ``python -m p4src.build_program``, or ``make p4``. Needs ``p4c-bm2-ss`` on PATH.

The result depends on the sources and the compiler's version alone, so it can be checked in and compared:
where in which file a thing was written is taken out of p4c's JSON. ``manifest.json`` tells what was compiled,
and by what.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from leveller.errors import UserError
from p4src import ROOT, build_tna
from p4src.sources import compiler_version, constants, sha256, source_hashes

TARGET = "v1model"
SOURCE = f"{TARGET}/leveller.p4"
EXAMPLES = ("examples/l2.p4",)
"""Other pipelines with the level control in them: each is compiled into a folder of its name."""
COMPILER = "p4c-bm2-ss"


def compile_program(output: Path, root: Path = ROOT, source: str = SOURCE) -> None:
    """Compile ``source`` of ``root`` into ``output``: its JSON and P4Info by its own name, ``manifest.json``.

    Raises UserError when there is no compiler, or it reports an error or a warning; ``output`` is then as it
    was before.
    """
    compiler = shutil.which(COMPILER)
    if compiler is None:
        raise UserError(
            f"{COMPILER} is not on PATH", "install p4c (the compiled program is checked in without it)"
        )
    with tempfile.TemporaryDirectory() as scratch:
        name = Path(source).stem
        config, p4info = Path(scratch, f"{name}.json"), Path(scratch, f"{name}.p4info.txtpb")
        unused = [] if source == SOURCE else ["--Wdisable=unused"]  # a library is more than its user needs
        done = subprocess.run(
            [compiler, "--std", "p4-16", "--Werror", *unused,
             "--p4runtime-files", str(p4info), "-o", str(config), source],
            cwd=root, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise UserError(f"the program does not compile:\n{done.stderr.strip()}", "mend the source")
        files = {
            config.name: json.dumps(_without_places(json.loads(config.read_text()), name), indent=1) + "\n",
            p4info.name: p4info.read_text(),
        }
    manifest = {
        "target": TARGET,
        "compiler": f"{COMPILER} {compiler_version(compiler)}",
        "sources": source_hashes(TARGET, root) | {source: sha256((root / source).read_bytes())},
        "outputs": {name: sha256(text.encode()) for name, text in files.items()},
        "constants": constants(root),
    }
    files["manifest.json"] = json.dumps(manifest, indent=2) + "\n"
    output.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (output / name).write_text(text, encoding="utf-8")


def _without_places(node: Any, name: str) -> Any:  # noqa: ANN401 (any JSON)
    """Drop where in which file each thing was written; the program is called ``name``, not by its file's."""
    if isinstance(node, dict):
        return {
            key: name if key == "program" else _without_places(value, name)
            for key, value in node.items()
            if key != "source_info"
        }
    if isinstance(node, list):
        return [_without_places(value, name) for value in node]
    return node


def main() -> int:
    """Compile everything into ``build``; 0 when that worked, 2 with one message when not.

    Without Tofino's back end, which few have, that part stays as it is checked in.
    """
    output = ROOT / "build"
    try:
        compile_program(output / TARGET)
        for source in EXAMPLES:
            compile_program(output / Path(source).stem, source=source)
        if shutil.which(build_tna.COMPILER):
            build_tna.compile_tna(output / build_tna.TARGET)
        else:
            print(f"{build_tna.COMPILER} is not on PATH: the program for Tofino is not compiled")  # noqa: T201
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 (a build tool's own output)
        return 2
    print(f"compiled into {output}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
