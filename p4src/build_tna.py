"""Compile the program for Tofino and count what it takes, in ``make p4``. Needs ``p4c-barefoot`` on PATH.

Checked in are the P4Info of each chip, and how much of the chip the program takes: ``resources.json``, and
``resources.md`` for people. What the chip itself loads is not: `docs/tofino.md` says how to make it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leveller.errors import UserError
from p4src import ROOT
from p4src.sources import compiler_version, constants, sha256, source_hashes

TARGET = "tna"
COMPILER = "p4c-barefoot"


@dataclass(frozen=True, slots=True)
class Chip:
    """A kind of Tofino."""

    arch: str
    number: int
    """What ``__TARGET_TOFINO__`` is in the source."""
    stages: int
    """Match-action stages that it has. p4c places a program in more without a word."""


CHIPS: Mapping[str, Chip] = {"tofino": Chip("tna", 1, 12), "tofino2": Chip("t2na", 2, 20)}
"""p4c's name of the target -> the chip."""

# Of a stage, by p4c's names in resources.json: what, and where its list is.
KINDS = {
    "SRAM": ("rams", "srams"),
    "map RAM": ("map_rams", "maprams"),
    "TCAM": ("tcams", "tcams"),
    "gateways": ("gateways", "gateways"),
    "stateful ALUs": ("meter_alus", "meters"),
    "statistics ALUs": ("statistic_alus", "stats"),
    "logical tables": ("logical_tables", "ids"),
    "hash distribution": ("hash_distribution_units", "units"),
}


def compile_tna(output: Path, root: Path = ROOT) -> None:
    """Compile ``root`` for every chip into ``output``: P4Info, resources and manifest.

    Raises UserError when there is no compiler, it reports an error, or a chip has too few stages; ``output``
    is then as it was before.
    """
    compiler = shutil.which(COMPILER)
    if compiler is None:
        raise UserError(
            f"{COMPILER} is not on PATH",
            "build p4c with -DENABLE_TOFINO=ON (the report is checked in without it)",
        )
    files: dict[str, str] = {}
    resources: dict[str, Any] = {}
    for name, chip in CHIPS.items():
        p4info, resources[name] = _compile(compiler, name, chip, root)
        files[f"{name}.p4info.txtpb"] = p4info
    files["resources.json"] = json.dumps(resources, indent=1) + "\n"
    files["resources.md"] = report(resources, constants(root))
    manifest = {
        "target": TARGET,
        "compiler": f"{COMPILER} {compiler_version(compiler)}",
        "sources": source_hashes(TARGET, root),
        "outputs": {name: sha256(text.encode()) for name, text in files.items()},
        "constants": constants(root),
    }
    files["manifest.json"] = json.dumps(manifest, indent=2) + "\n"
    output.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (output / name).write_text(text, encoding="utf-8")


def _compile(compiler: str, name: str, chip: Chip, root: Path) -> tuple[str, dict[str, Any]]:
    """Return P4Info and resources of the program on one chip."""
    with tempfile.TemporaryDirectory() as scratch:
        p4info = Path(scratch, "p4info.txtpb")
        done = subprocess.run(
            [compiler, "--target", name, "--arch", chip.arch, f"-D__TARGET_TOFINO__={chip.number}", "-g",
             "--p4runtime-force-std-externs", "--p4runtime-files", str(p4info), "-o", scratch,
             f"{TARGET}/leveller.p4"],
            cwd=root, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise UserError(
                f"the program does not compile for {name}:\n{done.stderr.strip()}", "mend the source"
            )
        check_parser(Path(scratch, "pipe", "leveller.bfa").read_text(encoding="utf-8"))
        logs = Path(scratch, "pipe", "logs")
        used = summary(
            json.loads((logs / "resources.json").read_text()), json.loads((logs / "phv.json").read_text())
        )
        check_stages(name, used)
        return p4info.read_text(encoding="utf-8"), used


def summary(resources: dict[str, Any], phv: dict[str, Any]) -> dict[str, Any]:
    """Return what is used of each kind, stage by stage, from p4c's own logs."""
    stages = sorted(resources["resources"]["mau"]["mau_stages"], key=lambda stage: int(stage["stage_number"]))
    used = max(int(stage["stage_number"]) for stage in stages if stage["logical_tables"]["ids"]) + 1
    return {
        "stages": used,
        "phv_bits": phv_bits(phv),
        "per_stage": [
            {kind: len(stage[group][items]) for kind, (group, items) in KINDS.items()}
            for stage in stages[:used]
        ],
    }


def phv_bits(phv: dict[str, Any]) -> dict[str, int]:
    """Return bits in containers that hold something, by the pipeline that has them."""
    bits: dict[str, int] = {}
    for container in phv["containers"]:
        if container["slices"]:
            bits[container["gress"]] = bits.get(container["gress"], 0) + container["bit_width"]
    return bits


def check_parser(assembly: str) -> None:
    """Raise UserError when the compiler has lost what the parser's states match on (p4c 1.2.5.16 does)."""
    if "\n      0x0800:\n" not in assembly:
        raise UserError(f"{COMPILER} loses what the parser matches on", "mend it as docs/tofino.md says")


def check_stages(name: str, used: Mapping[str, Any]) -> None:
    """Raise UserError when the program does not fit into the chip."""
    if used["stages"] > CHIPS[name].stages:
        raise UserError(
            f"the program takes {used['stages']} stages, and {name} has {CHIPS[name].stages}",
            "make a size in shared/sizes.p4 smaller, or shorten a chain of tables",
        )


def report(resources: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
    """Return ``resources.md``."""
    lines = [
        "# What the program takes of a Tofino",
        "",
        "Counted by `make p4` in p4c's own report of the placement; nothing has been run on a chip.",
        "",
        "| size | entries |",
        "|---|---|",
        *(
            f"| {name} | {sizes[name]:,} |"
            for name in sizes
            if name.startswith(("FLOW", "GROUPS", "ROUTES", "ECMP"))
        ),
    ]
    for name, used in resources.items():
        kinds = list(KINDS)
        lines += [
            "",
            f"## {name}: {used['stages']} of {CHIPS[name].stages} stages",
            "",
            "PHV: " + ", ".join(f"{gress} {bits:,} bits" for gress, bits in sorted(used["phv_bits"].items())),
            "",
            "| stage | " + " | ".join(kinds) + " |",
            "|" + "---|" * (len(kinds) + 1),
        ]
        for number, stage in enumerate(used["per_stage"]):
            lines.append(f"| {number} | " + " | ".join(str(stage[kind]) for kind in kinds) + " |")
        totals = [sum(stage[kind] for stage in used["per_stage"]) for kind in kinds]
        lines.append("| all | " + " | ".join(map(str, totals)) + " |")
    return "\n".join(lines) + "\n"
