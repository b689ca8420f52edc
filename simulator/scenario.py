"""Scenario files of the simulator: a fabric, the jobs on it, and how they are ranked (docs/simulator.md)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, Tag, field_validator, model_validator

from controlplane.model import Link
from controlplane.policies import Scope, leveller_host
from leveller.config import Section, kinds, load
from leveller.errors import UserError
from simulator import profiles
from simulator.bounds import MAX_STEPS, Bytes, Gpus, Id, Iterations, Jitter, PositiveSeconds, Seconds, Weight
from simulator.fabric import Fabric
from simulator.fabrics import AnyFabric
from simulator.traces import like
from simulator.traces.choose import notes
from simulator.traces.sections import AcmeTrace, LingjunLike, LingjunPeak, LingjunTrace
from simulator.traffic import Collective, Placement, bytes_per_pair, full_rate_bytes_per_pair
from simulator.workload import Workload

MAX_JOBS = 20_000
"""More jobs than this are taken for a slip of the finger."""

MAX_SAMPLES = 1_000_000
"""So are more samples of R than this."""


class Traffic(Section):
    """What a communication phase sends: for ``comm_s`` seconds at a NIC's full rate, or data of ``bytes``.

    Between the job's hosts as ``collective`` says, or along given ``paths``.
    """

    comm_s: Seconds | None = None
    bytes: Bytes | None = None
    collective: Collective = Collective.ALL_REDUCE
    paths: Annotated[list[Annotated[list[str], Field(min_length=1)]], Field(min_length=1)] | None = None
    slack_s: Seconds = 0.0

    @model_validator(mode="after")
    def _one_measure(self) -> Traffic:
        if self.comm_s is not None and self.bytes is not None:
            raise ValueError("it has both comm_s and bytes: keep one")
        for path in self.paths or ():
            for link in path:
                Link.parse(link)
            if len(set(path)) < len(path):
                raise ValueError(f"paths names a link twice in {path}: a flow crosses a link once")
        return self

    @property
    def communicates(self) -> bool:
        """Whether anything is sent."""
        return bool(self.comm_s or self.bytes)

    def sending_s(self, hosts: int, fabric: Fabric, nics: int) -> float:
        """Return about what it takes alone, between so many hosts of so many NICs."""
        if self.paths is not None or not fabric.hosts:
            return self.bytes / fabric.rate if self.bytes is not None else self.comm_s or 0.0
        if hosts < 2 or not self.communicates:
            return 0.0
        receivers = hosts - 1 if self.collective is Collective.ALL_TO_ALL else 1
        if self.bytes is not None:
            return bytes_per_pair(self.collective, hosts, self.bytes) * receivers / (fabric.rate * nics)
        sent = full_rate_bytes_per_pair(self.collective, hosts, self.comm_s or 0.0, fabric.rate)
        return sent * receivers / fabric.rate


class PhaseSection(Traffic):
    """A phase of an iteration: computing (``compute_s``) or communicating, once those in ``after`` end.

    Without ``after`` it follows the phase above it. ``micro_batch``, ``kind`` and ``layer`` say which of the
    job's coflows goes first, for the policies that ask (`controlplane.policies.hermod`); without ``kind``, an
    all-to-all is for experts (EP), a pipeline PP, all else DP.
    """

    name: str | None = None
    micro_batch: Annotated[int, Field(ge=0, le=MAX_STEPS)] = 0
    kind: Literal["DP", "EP", "PP", "TP"] | None = None
    layer: Annotated[int, Field(ge=0, le=MAX_STEPS)] = 0
    compute_s: Seconds | None = None
    after: list[str] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> PhaseSection:
        if (self.compute_s is None) == (self.comm_s is None and self.bytes is None):
            raise ValueError("a phase either computes or communicates: give one of compute_s, comm_s, bytes")
        return self


class JobSection(Traffic):
    """A job: an iteration computes for ``compute_s``, then communicates; or it has ``phases`` of its own.

    The last ``overlap_s`` of computing go on while it communicates. What the job does not say itself, a
    ``profile`` of `simulator.profiles` does.
    """

    id: Id
    profile: str | None = None
    compute_s: Seconds | None = None
    overlap_s: Seconds = 0.0
    phases: Annotated[list[PhaseSection], Field(min_length=1)] | None = None
    hosts: Annotated[list[str], Field(min_length=1)] | None = None
    gpus: Gpus | None = None
    start_s: Seconds = 0.0
    iterations: Iterations | None = None
    weight: Weight = 1.0
    jitter: Jitter = 0.0

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, data: object) -> object:
        return profiles.fill(data) if isinstance(data, dict) and "profile" in data else data

    @model_validator(mode="after")
    def _consistent(self) -> JobSection:
        if self.phases is None:
            if self.compute_s is None or (self.comm_s is None and self.bytes is None):
                raise ValueError(f"job {self.id} needs compute_s and one of comm_s and bytes, or phases")
            if not self.compute_s and not self.communicates:
                raise ValueError(f"job {self.id} has no phase that takes time: give it one")
            if self.overlap_s > self.compute_s:
                raise ValueError(f"overlap_s is more than compute_s = {self.compute_s}: it is a part of that")
            return self
        if self.compute_s is not None or self.comm_s is not None or self.bytes is not None:
            raise ValueError(f"job {self.id} has phases: put compute_s, comm_s and bytes into them")
        if not any(phase.compute_s or phase.communicates for phase in self.phases):
            raise ValueError(f"job {self.id} has no phase that takes time: give it one")
        known: set[str] = set()
        for phase in self.phases:
            unknown = [name for name in phase.after or () if name not in known]
            if unknown:
                raise ValueError(f"job {self.id}: after names {unknown[0]!r}: name a phase above it")
            if phase.name is not None:
                if phase.name in known:
                    raise ValueError(f"job {self.id} has two phases {phase.name!r}: rename one")
                known.add(phase.name)
        return self

    @property
    def needs_hosts(self) -> bool:
        """Whether some traffic of the job goes between its hosts, not along given paths."""
        parts: list[Traffic] = list(self.phases) if self.phases else [self]
        return any(part.communicates and part.paths is None for part in parts)

    def alone_s(self, fabric: Fabric) -> float:
        """Return about what an iteration takes alone, its phases one after the other and only NICs slow."""
        host = next(iter(fabric.hosts.values()), None)
        hosts = len(self.hosts) if self.hosts else -(-(self.gpus or 1) // (host.gpus if host else 1))
        parts: list[PhaseSection | JobSection] = list(self.phases) if self.phases else [self]
        sending = sum(part.sending_s(hosts, fabric, len(host.up) if host else 1) for part in parts)
        return sum(part.compute_s or 0.0 for part in parts) + sending


class PolicySection(Section):
    """How jobs are ranked: every ``tau_s`` (0: whenever anything happens), into ``levels``.

    Levels take effect ``delay_s`` after the reports they follow from, and stop each flow whose level they
    change for ``stall_s``. A new job runs alone at the top level
    until ``profile_iterations`` of its iterations are done. ``half_life_s`` and ``optimism_s`` shape R
    (`simulator.progress`); ``efficiency`` turns policy leveller towards Crux (`controlplane.policies.blend`).
    ``host_tau_s`` and ``host_stall_s`` are what policy leveller-host has for ``tau_s`` and ``stall_s``.
    ``paths`` are ECMP's or those that Crux selects; by default Crux's under policy crux, else ECMP's.
    """

    tau_s: Seconds = 0.25
    levels: Annotated[int, Field(ge=1, le=1024)] = 8
    scope: Scope = Scope.FABRIC
    delay_s: Seconds = 0.0
    stall_s: Seconds = 0.0
    profile_iterations: Annotated[int, Field(ge=0, le=MAX_STEPS)] = 0
    half_life_s: PositiveSeconds | None = None
    optimism_s: Seconds = 0.0
    efficiency: Annotated[float, Field(ge=0, le=1)] = 0.0
    paths: Literal["ecmp", "crux"] | None = None
    host_tau_s: Seconds = leveller_host.TAU_S
    host_stall_s: Seconds = leveller_host.STALL_S


AnyWorkload = Annotated[
    Annotated[Workload, Tag("drawn")]
    | Annotated[LingjunTrace, Tag("lingjun")]
    | Annotated[AcmeTrace, Tag("acme")]
    | Annotated[LingjunPeak, Tag("lingjun-peak")]
    | Annotated[LingjunLike, Tag("lingjun-like")],
    kinds("drawn", "lingjun", "acme", "lingjun-peak", "lingjun-like", default="drawn"),
]
"""What ``[workload]`` can be; ``kind`` is "drawn" unless it says otherwise."""


class Scenario(Section):
    """A scenario file.

    R over time is noted every ``sample_s`` (default: 200 times in all). Where a job is named as ``newcomer``,
    how long all take to settle after it came is measured (`simulator.recovery`).
    """

    horizon_s: PositiveSeconds
    seed: Annotated[int, Field(ge=0)] = 0
    sample_s: PositiveSeconds | None = None
    newcomer: str | None = None
    placement: Placement = Placement.PACKED
    fabric: AnyFabric
    policy: PolicySection = PolicySection()
    jobs: list[JobSection] = Field(default_factory=list)
    workload: AnyWorkload | None = None

    @field_validator("jobs", mode="before")
    @classmethod
    def _not_too_many(cls, jobs: object) -> object:
        if isinstance(jobs, list) and len(jobs) > MAX_JOBS:
            raise ValueError(f"there are {len(jobs)} of them: keep to {MAX_JOBS}")
        return jobs

    @model_validator(mode="after")
    def _consistent(self) -> Scenario:
        if bool(self.jobs) == (self.workload is not None):
            raise ValueError("give the jobs as [[jobs]], or have them drawn by [workload]: one of the two")
        seen: set[str] = set()
        for number, job in enumerate(self.jobs):
            if job.id in seen:
                raise ValueError(f"jobs.{number}.id = {job.id!r} is taken: rename it")
            seen.add(job.id)
        if self.newcomer is not None:
            starts = [job.start_s for job in self.jobs if job.id == self.newcomer]
            if not starts:
                raise ValueError(f"newcomer = {self.newcomer!r} is no job: give the id of one of [[jobs]]")
            if starts[0] >= self.horizon_s:
                what = f"newcomer = {self.newcomer!r} starts at {starts[0]} s, not before horizon_s"
                raise ValueError(f"{what} = {self.horizon_s}: let it start earlier, or lengthen horizon_s")
        if self.sample_s is not None and self.horizon_s > MAX_SAMPLES * self.sample_s:
            raise ValueError(f"sample_s = {self.sample_s} is too short: keep to {MAX_SAMPLES} samples")
        if self.workload is not None and self.fabric.kind == "link":
            raise ValueError("[workload] needs a fabric with hosts: fabric.kind = 'leaf-spine', say")
        return self


def read(path: Path) -> tuple[Scenario, Fabric]:
    """Read a scenario and build its fabric. Raises UserError naming the file, the key and the mend.

    Rows of a trace that cannot be used, and jobs that are not as the workload says, are logged as warnings.
    """
    scenario, fabric, notes = _prepare(path, load(path, Scenario))
    for note in notes:
        logging.getLogger(__name__).warning("%s", note)
    return scenario, fabric


def prepare(path: Path, scenario: Scenario) -> tuple[Scenario, Fabric]:
    """Return ``scenario``, as ``path`` has it, with the paths of its files, and its fabric.

    Raises UserError where a job and the fabric do not fit, or the run would not end.
    """
    scenario, fabric, _ = _prepare(path, scenario)
    return scenario, fabric


def _prepare(path: Path, scenario: Scenario) -> tuple[Scenario, Fabric, list[str]]:
    if scenario.workload is not None and not isinstance(scenario.workload, Workload):
        scenario = scenario.model_copy(update={"workload": scenario.workload.within(path.parent)})
    try:
        fabric = scenario.fabric.build(path.parent)
        notes = _notes(scenario.workload, fabric) if scenario.workload else []
    except UserError as error:
        raise UserError(f"{path}: {error.what}", error.mend) from None
    _check_jobs(path, scenario, fabric)
    _check_length(path, scenario, fabric)
    return scenario, fabric, notes


def _notes(workload: AnyWorkload, fabric: Fabric) -> list[str]:
    if isinstance(workload, Workload | LingjunLike):
        sizes = workload.gpus if isinstance(workload, Workload) else like.sizes(workload.min_gpus)
        if max(sizes) <= fabric.gpus:
            return []
        return [f"workload: jobs of more GPUs than the fabric's {fabric.gpus} get all of these"]
    try:
        return notes(workload, fabric)
    except UserError as error:
        files = zip(("jobs", "workers"), workload.files, strict=False)
        key = next((f"workload.{key} = " for key, file in files if error.what.startswith(f"{file} ")), "")
        raise UserError(f"{key}{error.what}", error.mend) from None


def _check_length(path: Path, scenario: Scenario, fabric: Fabric) -> None:
    """Refuse what would run for days: a slip of the finger in the horizon, tau, or a job's times."""
    horizon, policy = scenario.horizon_s, scenario.policy
    until = f"in horizon_s = {horizon:g}"
    for key in ("tau_s", "host_tau_s"):
        tau = getattr(policy, key)
        if tau and horizon / tau > MAX_STEPS and (key == "tau_s" or key in policy.model_fields_set):
            what = f"{path}: policy.{key} = {tau} makes {horizon / tau:.2g} rankings {until}"
            raise UserError(what, f"keep to {MAX_STEPS}, with a longer {key} or a shorter horizon_s")
    for number, job in enumerate(scenario.jobs):
        where = f"{path}: jobs.{number}: job {job.id}"
        alone = job.alone_s(fabric)
        if alone == 0:
            mend = "give it compute_s, or hosts to communicate between"
            raise UserError(f"{where} takes no time where its GPUs are on one host", mend)
        steps = (horizon - job.start_s) / alone
        if job.iterations is None and steps > MAX_STEPS:
            mend = f"keep to {MAX_STEPS}: mend its times, give it iterations, or shorten horizon_s"
            raise UserError(f"{where} has {steps:.2g} iterations of {alone:.2g} s {until}", mend)


def _check_jobs(path: Path, scenario: Scenario, fabric: Fabric) -> None:
    names = {str(link) for link in fabric.links}
    on_link = not fabric.hosts
    placed = any(job.hosts is None for job in scenario.jobs)
    for number, job in enumerate(scenario.jobs):
        where = f"{path}: jobs.{number}"
        parts = {where: job} | {f"{where}.phases.{place}": one for place, one in enumerate(job.phases or ())}
        for part, traffic in parts.items():
            for link in (link for links in traffic.paths or () for link in links):
                if link not in names:
                    mend = f"links are written SWITCH:PORT, such as {fabric.links[0]}"
                    raise UserError(f"{part}.paths names {link}, which the fabric does not have", mend)
        if on_link:
            if job.hosts:
                raise UserError(f"{where}.hosts: fabric.kind = 'link' has no hosts", "remove hosts")
            continue
        for host in job.hosts or ():
            if host not in fabric.hosts:
                first, last = next(iter(fabric.hosts)), next(reversed(fabric.hosts))
                raise UserError(
                    f"{where}.hosts names {host}, which the fabric does not have",
                    f"hosts are {first} to {last}",
                )
        if len(set(job.hosts or ())) < len(job.hosts or ()):
            raise UserError(f"{where}.hosts names a host twice", "name each once")
        if job.hosts is None and job.gpus is None and job.needs_hosts:
            raise UserError(
                f"{where}: job {job.id} has no hosts", "give hosts, or gpus to have it placed, or paths"
            )
        if job.hosts is None and (job.gpus or 0) > fabric.gpus:
            raise UserError(f"{where}.gpus = {job.gpus}", f"the fabric has {fabric.gpus} GPUs in all")
        if placed and job.hosts is not None:
            raise UserError(f"{where}.hosts: other jobs are placed", "give hosts to all jobs or to none")
