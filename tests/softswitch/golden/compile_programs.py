"""Compile the programs of this folder: ``python -m tests.softswitch.golden.compile_programs``. Needs p4c.

Of p4c's JSON only what a switch reads is kept, and which line a statement is from, on as few lines as can be.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "programs"


def compiled(source: Path) -> tuple[str, str]:
    """Return the JSON and the P4Info that p4c makes of ``source``."""
    with tempfile.TemporaryDirectory() as scratch:
        config, p4info = Path(scratch, "config.json"), Path(scratch, "p4info.txtpb")
        command = ["p4c-bm2-ss", "--std", "p4-16", "--p4runtime-files", p4info, "-o", config, source.name]
        subprocess.run(command, cwd=source.parent, check=True, capture_output=True)
        program = _shortened(json.loads(config.read_text()))
        del program["__meta__"]
        return json.dumps(program, separators=(",", ":")) + "\n", p4info.read_text()


def _shortened(node: Any) -> Any:
    if isinstance(node, dict):
        return {
            key: {k: value[k] for k in ("filename", "line") if k in value}
            if key == "source_info"
            else _shortened(value)
            for key, value in node.items()
        }
    return [_shortened(value) for value in node] if isinstance(node, list) else node


if __name__ == "__main__":
    for path in sorted(PROGRAMS.glob("*.p4")):
        config, p4info = compiled(path)
        path.with_suffix(".json").write_text(config)
        path.with_suffix(".p4info.txtpb").write_text(p4info)
