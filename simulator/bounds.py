"""What the numbers of a scenario may be: typing errors have a ceiling, and one line that says so."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

LONGEST_S = 1e9
"""Seconds of the longest time, some thirty years."""

MAX_ITERATIONS = 100_000
"""Iterations that a job can ask for."""

MAX_GPUS = 100_000
"""GPUs that a job can ask for."""

MAX_STEPS = 10_000_000
"""Rankings of a run, and iterations of a job that runs until the horizon: some hours' work."""

Seconds = Annotated[float, Field(ge=0, le=LONGEST_S, allow_inf_nan=False)]
PositiveSeconds = Annotated[float, Field(gt=0, le=LONGEST_S, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Bytes = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]
PositiveBytes = Annotated[float, Field(gt=0, le=1e18, allow_inf_nan=False)]
Gbps = Annotated[float, Field(ge=1e-9, le=1e9, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)]
Jitter = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Iterations = Annotated[int, Field(ge=1, le=MAX_ITERATIONS)]
Gpus = Annotated[int, Field(ge=1, le=MAX_GPUS)]


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"{text!r} has characters that cannot be printed: leave them out")
    return text


Id = Annotated[str, Field(min_length=1), AfterValidator(_printable)]
"""A name that goes into tables and lines."""
