"""The kinds of a scenario's ``[workload]`` that are made of traces (docs/simulator.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from leveller.config import Section
from simulator.bounds import Jitter, Positive, PositiveSeconds, Seconds
from simulator.profiles import COMPLETE, PROFILES


class Profiled(Section):
    """Jobs without traffic of their own: each gets one of ``profiles``, drawn by the seed, and ``jitter``.

    Jobs of less than ``min_gpus`` GPUs are left out.
    """

    profiles: Annotated[list[str], Field(min_length=1)] = Field(default=list(COMPLETE))
    min_gpus: Annotated[int, Field(ge=1, le=744)] = 8
    jitter: Jitter = 0.0

    @field_validator("profiles")
    @classmethod
    def _complete(cls, names: list[str]) -> list[str]:
        for name in names:
            if name not in PROFILES:
                raise ValueError(f"there is no profile {name!r}: choose from {', '.join(COMPLETE)}")
            if name not in COMPLETE:
                raise ValueError(
                    f"profile {name!r} has no public compute time: choose from {', '.join(COMPLETE)}"
                )
        return names

    @property
    def files(self) -> tuple[Path, ...]:
        """The files it is read from."""
        return ()

    def within(self, folder: Path) -> Profiled:  # noqa: ARG002
        """Return the same with its files' paths relative to ``folder``."""
        return self


class Replayed(Profiled):
    """A trace's arrivals, sizes and durations, in a time that goes ``speedup`` times as fast.

    Of the trace's time, in seconds from the first usable job's start, only what lies in ``window_s``. Jobs
    that run when it begins start then, with what remains of them.
    """

    speedup: Positive = 1.0
    window_s: tuple[Seconds, PositiveSeconds] | None = None

    @field_validator("window_s")
    @classmethod
    def _ordered(cls, window: tuple[float, float] | None) -> tuple[float, float] | None:
        if window and window[0] >= window[1]:
            raise ValueError(f"window_s = {list(window)}: put the earlier time first")
        return window


class LingjunTrace(Replayed):
    """Alibaba's ``jobs`` (job.csv), ``workers`` (worker.csv); ``placed``: those on known hosts, there."""

    kind: Literal["lingjun"]
    jobs: Path
    workers: Path
    placed: bool = False

    @property
    def files(self) -> tuple[Path, ...]:
        """The files it is read from."""
        return (self.jobs, self.workers)

    def within(self, folder: Path) -> LingjunTrace:
        """Return the same with its files' paths relative to ``folder``."""
        return self.model_copy(update={"jobs": folder / self.jobs, "workers": folder / self.workers})


class AcmeTrace(Replayed):
    """One of Acme's traces: ``jobs`` is trace_seren.csv or trace_kalos.csv."""

    kind: Literal["acme"]
    jobs: Path

    @property
    def files(self) -> tuple[Path, ...]:
        """The files it is read from."""
        return (self.jobs,)

    def within(self, folder: Path) -> AcmeTrace:
        """Return the same with its files' paths relative to ``folder``."""
        return self.model_copy(update={"jobs": folder / self.jobs})


class LingjunPeak(Profiled):
    """The 39 real jobs of Lingjun's peak, all from 0 to the horizon."""

    kind: Literal["lingjun-peak"]


class LingjunLike(Profiled):
    """``jobs`` Lingjun-like jobs that ask for ``load`` of all GPUs, in a time ``speedup`` times as fast."""

    kind: Literal["lingjun-like"]
    jobs: Annotated[int, Field(ge=1, le=20_000)]
    load: Annotated[float, Field(gt=0, le=2, allow_inf_nan=False)] = 0.8
    speedup: Positive = 1.0


TraceWorkload = LingjunTrace | AcmeTrace | LingjunPeak | LingjunLike
