"""What the builds of every target have in common: the sources, their hashes, their constants."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

from p4src import ROOT

_CONSTANT = re.compile(r"^const\s+bit<\d+>\s+(\w+)\s*=\s*(\w+)\s*;", re.MULTILINE)


def source_hashes(target: str, root: Path = ROOT) -> dict[str, str]:
    """Return the SHA-256 of every source of ``target``'s program by its path in ``p4src``."""
    paths = [*root.glob("shared/*.p4"), *root.glob(f"{target}/*.p4")]
    return {path.relative_to(root).as_posix(): sha256(path.read_bytes()) for path in sorted(paths)}


def constants(root: Path = ROOT) -> dict[str, int]:
    """Return every ``const bit<N>`` of the shared constants and sizes, as the sources write them."""
    text = "".join(
        (root / "shared" / name).read_text(encoding="utf-8") for name in ("constants.p4", "sizes.p4")
    )
    return {name: int(value, 0) for name, value in _CONSTANT.findall(text)}


def compiler_version(compiler: str) -> str:
    """Return the version that ``compiler``, a path, says it has."""
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    text = done.stdout + done.stderr
    found = re.search(r"[Vv]ersion:? (\S+)", text)
    return found[1] if found else text.strip()


def sha256(data: bytes) -> str:
    """Return the digest in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
