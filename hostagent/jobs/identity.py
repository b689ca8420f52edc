"""Which job a process belongs to, from its environment, its command line and its pod's labels.

A process trains where it has PyTorch's ``env://`` variables RANK and WORLD_SIZE (``torchrun``, DeepSpeed,
Accelerate, Composer and operators set them); so do the ranks that Lightning starts, which have LOCAL_RANK and
WORLD_SIZE only. What Slurm, MPI and Ray start may be anything, so there the command line must be a
training's: Python, and not a launcher that is to start the training. A launcher is never a rank.

The job's id must be the same on every host; the first of these that is there is used:

1. SLURM_JOB_ID;
2. the labels that Kubernetes' JobSet, TrainJob, training operator or Job put on the pod, as
``NAMESPACE/NAME``; 3. TORCHELASTIC_RUN_ID, unless it is ``none``, which is what ``torchrun`` says without
``--rdzv-id``; 4. the namespace that MPI's runtime gave (PMIX_NAMESPACE, OMPI_MCA_ess_base_jobid), as
``mpi/NAMESPACE``; 5. RAY_JOB_ID, as ``ray/CLUSTER/ID``;
6. MASTER_ADDR:MASTER_PORT; where MASTER_ADDR is a loopback address the job is on this host alone and
   ``HOST/`` is put in front, for every host has its ``localhost``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hostagent.jobs import kubernetes

MAX_ID = 128
"""Longest job id that is believed."""

MAX_RANKS = 1_000_000

MARKERS = (b"RANK=", b"SLURM_PROCID=", b"RAY_JOB_ID=")
"""An environment without any of these is no training process's."""

_LOOPBACK = ("localhost", "127.", "::1", "[::1]")

_ENV = ("RANK", ("WORLD_SIZE",))
_LIGHTNING = ("LOCAL_RANK", ("WORLD_SIZE",))
_STARTERS = (
    ("SLURM_PROCID", ("SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "SLURM_NPROCS")),
    ("OMPI_COMM_WORLD_RANK", ("OMPI_COMM_WORLD_SIZE",)),
    ("PMI_RANK", ("PMI_SIZE",)),
    ("MV2_COMM_WORLD_RANK", ("MV2_COMM_WORLD_SIZE",)),
)

_LAUNCHERS = frozenset(
    {"accelerate", "colossalai", "composer", "deepspeed", "horovodrun", "mpiexec", "mpirun", "orted", "prted"}
    | {"prterun", "ray", "sbatch", "srun", "torchrun"}
)
_LAUNCHING_MODULES = re.compile(
    r"torch\.distributed\.(run|launch)|accelerate\.commands\..*|deepspeed\.launcher\..*|composer\.cli\..*"
)
_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*")
_RAY_TRAINER = re.compile(r"ray::\w{0,64}TrainWorker")


@dataclass(frozen=True, slots=True)
class Rank:
    """One rank of one job. ``world_size`` 0 is unknown."""

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


def parse_command(data: bytes) -> list[str]:
    """Read ``/proc/PID/cmdline``."""
    return data.decode("utf-8", "replace").rstrip("\0").split("\0")


def identify(
    environ: Mapping[str, str],
    host: str,
    command: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
) -> Rank | None:
    """Return the rank that a process with ``environ`` on ``host`` is; None where it is not training.

    ``command`` is its argument vector, ``labels`` are its pod's, with the namespace as
    `kubernetes.NAMESPACE`.
    """
    if launches(command):
        return None
    place = _place(environ, _ENV) or _place(environ, _LIGHTNING)
    if place is None and _is_python(command):
        place = next((found for names in _STARTERS if (found := _place(environ, names))), None)
    job = _job(environ, host, labels or {}) if place else None
    return Rank(job, *place) if place and job else None


def identify_ray(
    environ: Mapping[str, str], command: Sequence[str], parent: Sequence[str], pid: int
) -> Rank | None:
    """Return the rank that a Ray worker is, if it is one of Ray Train's.

    Ray changes the environment of a running process, where it cannot be seen, so neither rank nor world size
    are known: ``pid`` stands for the rank. ``parent`` is the argument vector of its raylet, which names the
    cluster.
    """
    job = environ.get("RAY_JOB_ID", "")
    if not (command and _RAY_TRAINER.match(command[0]) and job):
        return None
    cluster = next((part.partition("=")[2] for part in parent if part.startswith("--gcs-address=")), "")
    name = f"ray/{cluster}/{job}"
    return Rank(name, pid, 0) if cluster and _credible(name) else None


def is_lightning_child(environ: Mapping[str, str]) -> bool:
    """Say whether Lightning started it: then its parent is rank 0, and has nothing in its environment."""
    return "RANK" not in environ and _place(environ, _LIGHTNING) is not None


def launches(command: Sequence[str]) -> bool:
    """Say whether ``command`` starts the ranks of a job and is none itself."""
    words = [word.rpartition("/")[2] for word in command[:2]]
    if any(word in _LAUNCHERS for word in words[: 2 if words and _PYTHON.fullmatch(words[0]) else 1]):
        return True
    module = command.index("-m") + 1 if "-m" in command[:6] else len(command)
    return module < len(command) and _LAUNCHING_MODULES.fullmatch(command[module]) is not None


def _is_python(command: Sequence[str]) -> bool:
    return bool(command) and _PYTHON.fullmatch(command[0].rpartition("/")[2]) is not None


def _place(environ: Mapping[str, str], names: tuple[str, tuple[str, ...]]) -> tuple[int, int] | None:
    """Return rank and world size, from the variables ``names``."""
    rank = _number(environ.get(names[0]))
    size = next((number for name in names[1] if (number := _number(environ.get(name))) is not None), None)
    return (rank, size) if rank is not None and size is not None and rank < size <= MAX_RANKS else None


def _job(environ: Mapping[str, str], host: str, labels: Mapping[str, str]) -> str | None:
    run = environ.get("TORCHELASTIC_RUN_ID")
    mpi = environ.get("PMIX_NAMESPACE") or environ.get("OMPI_MCA_ess_base_jobid")
    for name in (
        environ.get("SLURM_JOB_ID"),
        kubernetes.job(environ, labels),
        run if run != "none" else None,
        f"mpi/{mpi}" if mpi else None,
    ):
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
