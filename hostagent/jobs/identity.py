"""Which job a process belongs to, from its environment alone.

A process trains where it has PyTorch's ``env://`` variables RANK and WORLD_SIZE (``torchrun``, ``srun`` and
operators set them). The job's id must be the same on every host; the first of these that is there is used:

1. SLURM_JOB_ID;
2. TORCHELASTIC_RUN_ID, unless it is ``none``, which is what ``torchrun`` says without ``--rdzv-id``;
3. MASTER_ADDR:MASTER_PORT; where MASTER_ADDR is a loopback address the job is on this host alone and
   ``HOST/`` is put in front, for every host has its ``localhost``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MAX_ID = 128
"""Longest job id that is believed."""

MAX_RANKS = 1_000_000

_LOOPBACK = ("localhost", "127.", "::1", "[::1]")


@dataclass(frozen=True, slots=True)
class Rank:
    """One rank of one job."""

    job: str
    rank: int
    world_size: int


def parse_environ(data: bytes) -> dict[str, str]:
    """Read ``/proc/PID/environ``; of a variable that is there twice the first counts, as for getenv."""
    environ: dict[str, str] = {}
    for entry in data.split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if equals:
            environ.setdefault(name.decode("utf-8", "replace"), value.decode("utf-8", "replace"))
    return environ


def identify(environ: Mapping[str, str], host: str) -> Rank | None:
    """Return the rank that a process with ``environ`` on ``host`` is; None where it is not training."""
    rank, world_size = _number(environ.get("RANK")), _number(environ.get("WORLD_SIZE"))
    if rank is None or world_size is None or not rank < world_size <= MAX_RANKS:
        return None
    job = _job(environ, host)
    return Rank(job, rank, world_size) if job else None


def _job(environ: Mapping[str, str], host: str) -> str | None:
    run = environ.get("TORCHELASTIC_RUN_ID")
    for name in (environ.get("SLURM_JOB_ID"), run if run != "none" else None):
        if name and _credible(name):
            return name
    address, port = environ.get("MASTER_ADDR"), _number(environ.get("MASTER_PORT"))
    if not address or port is None or not 0 < port < 65536:
        return None
    local = address.startswith(_LOOPBACK)
    name = f"{host}/{address}:{port}" if local else f"{address}:{port}"
    return name if _credible(name) else None


def _credible(name: str) -> bool:
    """Say whether ``name`` may go into reports, logs and metrics."""
    return len(name) <= MAX_ID and name.isprintable() and " " not in name


def _number(text: str | None) -> int | None:
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= 9):
        return None
    return int(text)
