"""Which port numbers a switch has for its cables. Pure, but for reading the program's P4Info.

A P4 port number has 9 bits on all targets; which of them lead nowhere depends on the target. On Tofino the
upper two bits are the pipe, and a pipe has 72 ports, of which some lead back into it (``docs/tofino.md`` says
where a box tells its own).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import p4src

MAX_P4_PORT = 511
MAX_OPENFLOW_PORT = 0xFEFF
"""Open vSwitch's highest; and the pipeline's metadata has 16 bits for it."""

_PIPES = range(0, 512, 128)


def reserved(program: p4src.Program) -> Mapping[int, str]:
    """Return port -> what it is, of the ports that no cable can be in where ``program`` runs."""
    match _architecture(program):
        case "v1model":
            return {
                program.constants["CPU_PORT"]: "is the controller's",
                MAX_P4_PORT: "means that a packet is dropped",
            }
        case "tna":
            return _beyond() | {
                pipe + port: "leads back into the switch (recirculation)"
                for pipe in _PIPES
                for port in range(68, 72)
            }
        case "t2na":
            back = dict.fromkeys((6, *_PIPES[1:]), "leads back into the switch (recirculation)")
            return _beyond() | back | {0: "is the controller's"}
        case _:
            return {}


def overlooked(program: p4src.Program) -> frozenset[int]:
    """Return ports that may carry packets although nobody has configured them.

    Besides those reserved: v1model's port 0, where a packet goes that no table has given a port; and Tofino's
    to its own processor, which is one in a chip of two pipes, another in one of four, and else a cable's.
    """
    more = {"v1model": {0}, "tna": {192, 320}}.get(_architecture(program), set())
    return frozenset(reserved(program)) | more


def _beyond() -> dict[int, str]:
    return {pipe + port: "is not there (a pipe has 72)" for pipe in _PIPES for port in range(72, 128)}


def _architecture(program: p4src.Program) -> str:
    """Return what the P4Info, as p4c writes it, says that the program was compiled for."""
    found = re.search(r'^  arch: "(\w+)"$', program.p4info.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else ""
