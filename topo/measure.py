"""Measuring a job's progress from its own log, as a tenant could.

R over a window is ideal time over time taken, between iteration ends: of k + 1 ends inside the window,
k x ideal / (last - first). Counting whole iterations against the window's length would add up to one
iteration of error; this adds none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

_MEGATRON = re.compile(r"^ \[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6})\] iteration +(\d+)/")
_NANOGPT = re.compile(r"^iter (\d+): loss \S+, time ([\d.]+)ms")


@dataclass(frozen=True, slots=True)
class Progress:
    """A job over a window: R and the iterations that R was measured on."""

    rate: float
    iterations: int


def megatron_ends(lines: Iterable[str], start: float) -> list[float]:  # noqa: ARG001 (one signature for all formats)
    """Return the Unix times at which iterations ended, from the time stamps of Megatron-LM's lines."""
    return [
        datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S.%f").timestamp()
        for line in lines
        if (found := _MEGATRON.match(line))
    ]


def nanogpt_ends(lines: Iterable[str], start: float) -> list[float]:
    """Return the times at which iterations ended: nanoGPT prints durations; the first began at ``start``."""
    ends = []
    for line in lines:
        if found := _NANOGPT.match(line):
            start += float(found[2]) / 1000
            ends.append(start)
    return ends


READERS: dict[str, Callable[[Iterable[str], float], list[float]]] = {
    "megatron": megatron_ends,
    "nanogpt": nanogpt_ends,
}
"""Log format -> what reads iteration ends from its lines."""


def iteration_ends(log: Path, kind: str, start: float) -> list[float]:
    """Return the Unix times at which iterations ended according to ``log`` of format ``kind``."""
    with log.open(encoding="utf-8", errors="replace") as lines:
        return READERS[kind](lines, start)


def progress(ends: list[float], ideal_s: float, begin: float, end: float) -> Progress:
    """Measure R over the window from ``begin`` to ``end`` (Unix times).

    A starved job may finish none: its R is then at most one iteration over the window.
    """
    inside = [at for at in ends if begin <= at <= end]
    if len(inside) < 2:
        return Progress(len(inside) * ideal_s / (end - begin), len(inside))
    return Progress((len(inside) - 1) * ideal_s / (inside[-1] - inside[0]), len(inside) - 1)
