"""The P4 programs of the data plane, and what p4c made of them.

The sources are ``shared/*.p4`` and ``v1model/*.p4``; ``python -m p4src.build_program`` compiles them into
``build/<target>/``, which is checked in so that nobody needs a compiler to run them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from leveller.errors import UserError

ROOT = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled program: the device configuration, its P4Info, and where both came from."""

    json: Path
    """What the switch loads (bmv2 JSON)."""
    p4info: Path
    """The control plane's view, protobuf text."""
    manifest: Path
    """Compiler, hashes of sources and outputs, constants (JSON)."""
    constants: Mapping[str, int]
    """Every ``const`` of ``shared/constants.p4`` and ``sizes.p4``: INT_DSCP, CPU_PORT, FLOW_SLOTS, ..."""


@cache
def program(target: str) -> Program:
    """Return the compiled program for ``target``; ``v1model`` (bmv2, softswitch) is there.

    Raises UserError when there is none.
    """
    folder = ROOT / "build" / target
    manifest = folder / "manifest.json"
    try:
        constants = json.loads(manifest.read_text(encoding="utf-8"))["constants"]
    except FileNotFoundError:
        raise UserError(f"no compiled P4 program for target {target!r}", "build it with `make p4`") from None
    return Program(
        json=folder / "leveller.json",
        p4info=folder / "leveller.p4info.txtpb",
        manifest=manifest,
        constants=MappingProxyType(constants),
    )
