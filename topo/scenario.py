"""Scenario files: a fabric and the training jobs on it."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, Tag, model_validator

from leveller.config import Section, kinds, load
from leveller.errors import UserError
from topo import fabric
from topo.fabric import Fabric
from topo.lossless import EFFICIENCY, SLACK

Time = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
Mbps = Annotated[float, Field(ge=0.1, le=1e6, allow_inf_nan=False)]


class PairFabric(Section):
    """Two switches and one bottleneck of ``rate_mbps`` between them; a pair of hosts per job."""

    kind: Literal["pair"]
    host_pairs: Annotated[int, Field(ge=1, le=200)]
    rate_mbps: Mbps
    host_rate_mbps: Mbps

    def build(self) -> Fabric:
        """Make the fabric."""
        return fabric.pair(self.host_pairs, round(self.rate_mbps * 1e6), round(self.host_rate_mbps * 1e6))


class LeafSpineFabric(Section):
    """Leaves, spines and hosts; ``rate_mbps`` is that of a leaf's link to a spine."""

    kind: Literal["leaf-spine"]
    leaves: Annotated[int, Field(ge=1, le=200)]
    spines: Annotated[int, Field(ge=1, le=50)]
    hosts_per_leaf: Annotated[int, Field(ge=1, le=200)]
    rate_mbps: Mbps
    host_rate_mbps: Mbps

    def build(self) -> Fabric:
        """Make the fabric."""
        rates = (round(self.rate_mbps * 1e6), round(self.host_rate_mbps * 1e6))
        return fabric.leaf_spine(self.leaves, self.spines, self.hosts_per_leaf, *rates)


class TrainingJob(Section):
    """A job, one rank a host: ``compute`` and ``communicate`` in units (the latter alone at full rate)."""

    id: Annotated[str, Field(min_length=1, pattern=r"^[A-Za-z0-9_-]+$")]
    compute: Time
    communicate: Time
    hosts: Annotated[list[str], Field(min_length=2)]
    log: Literal["megatron", "nanogpt"] = "megatron"
    honest: Annotated[int, Field(ge=0)] | None = None
    """Iterations after which an emulated job lies: it tells of every second one only, to look starved."""

    @property
    def intensity(self) -> float:
        """Crux's I_j = W_j / t_j: GPU-seconds of computation per second of communication, one GPU a host."""
        return len(self.hosts) * self.compute / self.communicate


class Scenario(Section):
    """A scenario file: ``fabric``, ``jobs`` and ``unit_s``, the seconds of one unit."""

    unit_s: Time
    training: Literal["emulated", "ddp"] = "emulated"
    """``ddp``: real PyTorch DistributedDataParallel jobs (extra ``ddp``)."""
    fabric: Annotated[
        Annotated[PairFabric, Tag("pair")] | Annotated[LeafSpineFabric, Tag("leaf-spine")],
        kinds("pair", "leaf-spine"),
    ]
    jobs: Annotated[list[TrainingJob], Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> Scenario:
        hosts = self.fabric.build().hosts
        seen: set[str] = set()
        for job in self.jobs:
            for host in job.hosts:
                if host not in hosts:
                    raise ValueError(
                        f"job {job.id} names host {host}, which is not one of {', '.join(hosts)}"
                    )
                if host in seen:
                    raise ValueError(f"host {host} is given twice: give each rank a host of its own")
                seen.add(host)
        if len({job.id for job in self.jobs}) < len(self.jobs):
            raise ValueError("two jobs have the same id: rename one")
        return self

    def ideal_s(self, job: TrainingJob) -> float:
        """Return the seconds of one iteration of ``job`` alone, at full rate: see ``lossless.SLACK``."""
        return (job.compute + SLACK * job.communicate) * self.unit_s

    def volume(self, job: TrainingJob) -> int:
        """Return the payload bytes a rank of ``job`` sends an iteration: so many units at full rate."""
        return round(job.communicate * self.unit_s * self.fabric.rate_mbps * 1e6 / 8 * EFFICIENCY)

    def intensities(self) -> dict[str, float]:
        """Return each job's intensity, by which Crux (and ``static``) orders them: the highest goes first."""
        return {job.id: job.intensity for job in self.jobs}


def names() -> list[str]:
    """Return the names of the scenarios that come with the package."""
    files = (Path(entry.name) for entry in (resources.files("topo") / "scenarios").iterdir())
    return sorted(file.stem for file in files if file.suffix == ".toml")


def find(name: str) -> Scenario:
    """Return the scenario called ``name``, or the one in the file of that name where it ends in ``.toml``.

    Raises UserError where there is none, or where it is wrong.
    """
    if name.endswith(".toml"):
        return load(Path(name), Scenario)
    if name not in names():
        raise UserError(
            f"there is no scenario {name!r}", f"choose one of {', '.join(names())}, or give a .toml file"
        )
    with resources.as_file(resources.files("topo") / "scenarios" / f"{name}.toml") as path:
        return load(path, Scenario)
