"""What is due when: everything that can happen, in blocks of which each knows its earliest.

Items are flows, then phases, then jobs. ``State.calendar`` holds their times; ``due``, ``timer`` and
``paused`` are its parts. ``State.soonest`` holds the earliest time of each block. There are about as many
blocks as items in one: a new time mostly concerns two numbers, and the first is found along two short rows.
"""

from __future__ import annotations

from simulator.compiled import compiled
from simulator.least import least, where
from simulator.state import BITS, BLOCKS, FLOWS, PHASES, State


@compiled
def put(s: State, item: int, time: float) -> None:
    """Have ``item`` happen at ``time`` (inf: never)."""
    block = item >> s.counts[BITS]
    before = s.calendar[item]
    s.calendar[item] = time
    if time <= s.soonest[block]:
        s.soonest[block] = time
    elif before == s.soonest[block]:
        first = block << s.counts[BITS]
        s.soonest[block] = least(s.calendar, first, 1 << s.counts[BITS])


@compiled
def put_phase(s: State, phase: int, time: float) -> None:
    """Have the timer of ``phase`` ring at ``time``."""
    put(s, s.counts[FLOWS] + phase, time)


@compiled
def put_job(s: State, job: int, time: float) -> None:
    """Have the next iteration of ``job`` start at ``time``."""
    put(s, s.counts[FLOWS] + s.counts[PHASES] + job, time)


@compiled
def first_time(s: State) -> float:
    """Return when the next item is due; inf where none is."""
    return least(s.soonest, 0, s.counts[BLOCKS])


@compiled
def first_due(s: State, time: float) -> int:
    """Return the first item that is due at ``time``, which `first_time` gave."""
    block = where(s.soonest, 0, s.counts[BLOCKS], time)
    return where(s.calendar, block << s.counts[BITS], 1 << s.counts[BITS], time)


@compiled
def build(s: State) -> None:
    """Compute the blocks' earliest times."""
    for block in range(s.counts[BLOCKS]):
        first = block << s.counts[BITS]
        s.soonest[block] = least(s.calendar, first, 1 << s.counts[BITS])
