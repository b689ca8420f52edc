"""The P4 programs of the data plane, and what p4c made of them.

The sources are ``shared/*.p4``, ``v1model/*.p4`` and ``tna/*.p4``; ``python -m p4src.build_program`` compiles
them into ``build/<target>/``, which is checked in so that nobody needs a compiler to run them.
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
    """What the switch loads: bmv2 JSON, or for Tofino what `docs/tofino.md` makes."""
    p4info: Path
    """The control plane's view, protobuf text."""
    manifest: Path
    """Compiler, hashes of sources and outputs, constants (JSON)."""
    constants: Mapping[str, int]
    """Every ``const`` of ``shared/constants.p4`` and ``sizes.p4``: INT_DSCP, CPU_PORT, FLOW_SLOTS, ..."""

    def has_table(self, alias: str) -> bool:
        """Whether the P4Info, as p4c writes it, has a table of that name."""
        return f'alias: "{alias}"\n' in self.p4info.read_text(encoding="utf-8")


@cache
def program(target: str) -> Program:
    """Return the compiled program for ``target``; ``v1model`` (bmv2, softswitch) is there.

    Or an example's for v1model, by its name: ``l2``. Raises UserError when there is none.
    """
    folder = ROOT / "build" / target
    name = "leveller" if target == "v1model" else target
    manifest = folder / "manifest.json"
    try:
        constants = json.loads(manifest.read_text(encoding="utf-8"))["constants"]
    except FileNotFoundError:
        raise UserError(f"no compiled P4 program for target {target!r}", "build it with `make p4`") from None
    return Program(
        json=folder / f"{name}.json",
        p4info=folder / f"{name}.p4info.txtpb",
        manifest=manifest,
        constants=MappingProxyType(constants),
    )


def compiled(config: Path) -> Program:
    """Return a program of one's own with the level control in it: ``NAME.json``, for a v1model switch.

    For Tofino it is the file that `docs/tofino.md` makes. Its P4Info is beside it, ``NAME.p4info.txtpb``;
    its constants are those that it includes from ``shared``. Raises UserError where a file is missing.
    """
    p4info = config.with_suffix(".p4info.txtpb")
    for path in (config, p4info):
        if not path.is_file():
            raise UserError(
                f"there is no {path}",
                "make both: p4c-bm2-ss -o NAME.json --p4runtime-files NAME.p4info.txtpb",
            )
    reference = program("v1model")
    return Program(config, p4info, reference.manifest, reference.constants)
