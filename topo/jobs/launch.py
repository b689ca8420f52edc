"""Starting a job's ranks in their hosts, with the environment that torchrun gives them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leveller.errors import UserError
from topo import namespace
from topo.jobs.worker import LOGS, SLOTS

WORKER = Path(__file__).with_name("worker.py")
FIRST_PORT = 29500
"""torchrun's default MASTER_PORT; each job has a range of its own so that any two may share a host."""

PORTS_PER_JOB = 100

Execute = Callable[..., "subprocess.Popen[bytes]"]
"""``execute(host, argv, **popen_options)``: start a process in a host."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What a job's ranks are told. Times in seconds, ``volume`` in bytes sent a rank and iteration."""

    id: str
    number: int
    hosts: Sequence[str]
    addresses: Sequence[str]
    compute_s: float
    volume: int
    log: str
    honest: int | None = None
    """Iterations after which it tells of every second one only; None: it always tells of all."""
    ddp: bool = False
    """Real PyTorch instead of emulated ranks."""


@dataclass(slots=True)
class RunningJob:
    """A job's processes and where their logs are (rank by rank)."""

    spec: JobSpec
    start: float
    logs: list[Path]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def log(self) -> Path:
        """The log of the rank that logs: the last with Megatron-LM, the first with nanoGPT."""
        return self.logs[LOGS[self.spec.log][1]]

    @property
    def slots(self) -> Path:
        """The file that tells its ranks when iterations should start; it need not be there."""
        return self.logs[0].with_name(f"{self.spec.id}.slots")

    def keep_to(self, first: float, cycle: float) -> None:
        """Have iterations start at Unix time ``first`` and every ``cycle`` seconds after: `worker.Slots`."""
        new = self.slots.with_suffix(".new")
        new.write_text(f"{first!r} {cycle!r}\n")
        new.replace(self.slots)

    def check(self) -> None:
        """Raise UserError with a rank's last words when one has ended."""
        for rank, process in enumerate(self.processes):
            if process.poll() is not None:
                words = self.logs[rank].with_suffix(".err").read_text(errors="replace").strip()
                last = (words or "it said nothing").splitlines()[-1]
                raise UserError(
                    f"rank {rank} of {self.spec.id} ended with code {process.returncode} ({last})",
                    f"see {self.logs[rank].with_suffix('.err')}",
                )

    def stop(self) -> None:
        """End every rank and wait for it."""
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def launch(spec: JobSpec, start: float, directory: Path, execute: Execute) -> RunningJob:
    """Start ``spec``'s ranks, one a host; their first iteration begins at Unix time ``start``."""
    logs = [directory / f"{spec.id}-rank{rank}.log" for rank in range(len(spec.hosts))]
    job = RunningJob(spec, start, logs)
    rank_program = namespace.python("topo.jobs.ddp") if spec.ddp else [sys.executable, "-S", str(WORKER)]
    command = [*rank_program, "--ring", ",".join(spec.addresses)]
    command += ["--compute", str(spec.compute_s), "--volume", str(spec.volume)]
    command += ["--start", str(start), "--log", spec.log]
    command += [] if spec.honest is None else ["--honest", str(spec.honest)]
    port = FIRST_PORT + spec.number * PORTS_PER_JOB
    for rank, host in enumerate(spec.hosts):
        environment: dict[str, Any] = {
            **os.environ,
            "RANK": str(rank),
            "LOCAL_RANK": "0",
            "WORLD_SIZE": str(len(spec.hosts)),
            "LOCAL_WORLD_SIZE": "1",
            "MASTER_ADDR": spec.addresses[0],
            "MASTER_PORT": str(port),
            "TORCHELASTIC_RUN_ID": spec.id,
            "GLOO_SOCKET_IFNAME": f"{host}-eth0",
            SLOTS: str(job.slots),
        }
        with logs[rank].open("wb") as out, logs[rank].with_suffix(".err").open("wb") as err:
            process = execute(
                host, command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )
        if not spec.ddp:  # it takes seconds of computing to start
            namespace.real_time(process.pid)
        job.processes.append(process)
    return job
