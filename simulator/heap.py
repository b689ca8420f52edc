"""The links that flows grow on, as a binary heap: ``State.narrow`` by ``State.key``, smallest first."""

from __future__ import annotations

from simulator.compiled import compiled
from simulator.state import HEAP, NONE, State


@compiled
def settle(s: State, at: int, link: int, key: float) -> None:
    """Put ``link`` at place ``at``."""
    s.narrow[at] = link
    s.key[at] = key
    s.spot[link] = at


@compiled
def rise(s: State, at: int, link: int, key: float) -> None:
    """Put ``link`` at place ``at``, which is free, or above that where it belongs."""
    while at > 0:
        above = (at - 1) >> 1
        if s.key[above] <= key:
            break
        settle(s, at, s.narrow[above], s.key[above])
        at = above
    settle(s, at, link, key)


@compiled
def sink(s: State, link: int, key: float) -> None:
    """Put ``link`` at the top, which is free, or below that where it belongs."""
    links = s.counts[HEAP]
    at = 0
    child = 1
    while child < links:
        if child + 1 < links and s.key[child + 1] < s.key[child]:
            child += 1
        if key <= s.key[child]:
            break
        settle(s, at, s.narrow[child], s.key[child])
        at = child
        child = 2 * at + 1
    settle(s, at, link, key)


@compiled
def insert(s: State, link: int, key: float) -> None:
    """Put ``link`` in."""
    s.counts[HEAP] += 1
    rise(s, s.counts[HEAP] - 1, link, key)


@compiled
def lower(s: State, link: int, key: float) -> None:
    """Lower the key of ``link``, which is in, to ``key``."""
    rise(s, s.spot[link], link, key)


@compiled
def raise_top(s: State, key: float) -> None:
    """Raise the key of the link at the top to ``key``."""
    sink(s, s.narrow[0], key)


@compiled
def drop_top(s: State) -> None:
    """Take the link at the top out."""
    s.spot[s.narrow[0]] = NONE
    last = s.counts[HEAP] - 1
    s.counts[HEAP] = last
    if last > 0:
        sink(s, s.narrow[last], s.key[last])
