"""A user's own format: a regular expression in the agent's configuration.

It is run on hostile lines, so it is checked before: Python's matcher backtracks, and takes exponential time
for a repeat or a choice inside a repeat (``(a+)+``) and the power of their number for several repeats that
match the same (``.*.*.*x``). The first is refused by its form, the second by trying it; and no line longer
than MAX_LINE is given to it.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterable, Iterator

# The parsed form of a pattern; there is no public one.
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from hostagent.logs.epochs import EpochParser
from hostagent.logs.format import USERS, LogFormat, Mark, iteration, milliseconds, seconds, whole

MAX_LINE = 1024
"""Longest line that is given to a user's expression."""

MAX_PATTERN = 512

BUDGET_S = 0.01
"""What an expression may take for one line, whatever is in it."""

GROUPS = ("iteration", "index", "total", "epoch", "ms", "s")
"""Its named groups: iterations completed or the iteration's index from 0, and what else a line says."""

_Tree = Iterable[tuple[Any, Any]]
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
_FEW = 8
"""A repeat of at most so many is no repeat in this sense."""


def custom(name: str, pattern: str) -> LogFormat:
    """Return the format that ``pattern`` describes. Raises ValueError saying what is wrong with it."""
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"the expression has more than {MAX_PATTERN} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what may mean something else one day
            tree = parser.parse(pattern)
            compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise ValueError(f"no regular expression: {error}") from None
    names = set(compiled.groupindex)
    if len(names & {"iteration", "index"}) != 1:
        raise ValueError("it needs one group (?P<iteration>..), or (?P<index>..) where the log counts from 0")
    if unknown := sorted(names - set(GROUPS)):
        raise ValueError(f"group {unknown[0]} is not known; give some of: {', '.join(GROUPS)}")
    _refuse_nested(tree, inside=False)
    _try(compiled, _hostile(tree))

    def parse(line: str) -> Mark | None:
        found = compiled.search(line) if len(line) <= MAX_LINE else None
        return _mark(found.groupdict()) if found else None

    follow = (lambda: EpochParser(parse)) if "epoch" in names else None
    return LogFormat(name, parse, follow, rank=USERS)


def _mark(groups: dict[str, str | None]) -> Mark | None:
    index, text = groups.get("index"), groups.get("iteration")
    if index is None and text is None:
        return None
    completed = iteration(index) + 1 if index is not None else iteration(text or "")
    duration_ns = None
    if ms := groups.get("ms"):
        duration_ns = milliseconds(ms)
    elif s := groups.get("s"):
        duration_ns = seconds(s)
    epoch = groups.get("epoch")
    return Mark(
        completed,
        duration_ns,
        whole(groups.get("total")),
        epoch=iteration(epoch) if epoch is not None else None,
    )


def _try(compiled: re.Pattern[str], lines: Iterable[str]) -> None:
    """Refuse an expression that is too slow on any of ``lines``, cut short first so that this is quick."""
    for line in lines:
        length = 1
        while length <= MAX_LINE:
            begun = time.thread_time()
            compiled.search(line[:length])
            if time.thread_time() - begun > BUDGET_S:
                raise ValueError(
                    "it takes too long on some lines: several of its repeats match the same text"
                )
            length *= 2


def _refuse_nested(tree: _Tree, *, inside: bool) -> None:
    for operation, argument in tree:
        if operation in (sre.GROUPREF, sre.GROUPREF_EXISTS):
            raise ValueError("it refers back to a group, which may take for ever")
        varies = operation in _REPEATS and argument[0] != argument[1]
        if inside and (varies or operation is sre.BRANCH):
            raise ValueError("it has a repeat or a choice inside a repeat, which may take for ever")
        many = operation in _REPEATS and argument[1] > _FEW
        for part in _parts(argument):
            _refuse_nested(part, inside=inside or many)


def _parts(argument: object) -> Iterator[_Tree]:
    """Yield the sub-patterns in the argument of an operation, however they are packed."""
    if isinstance(argument, parser.SubPattern):
        yield argument
    elif isinstance(argument, tuple | list):
        for item in argument:
            yield from _parts(item)


def _hostile(tree: _Tree) -> list[str]:
    """Return lines that make a backtracking matcher of ``tree`` try whatever it can."""
    literals = {chr(code) for code in _literals(tree)}
    alphabet = sorted(literals | set("a1 .=,:-"))[:48]
    lines = [char * MAX_LINE for char in alphabet]
    lines += [(char + other) * (MAX_LINE // 2) for char in alphabet for other in "a1 " if other != char]
    prefix = "".join(chr(code) for code in _literals(tree))[: MAX_LINE // 2]
    return (
        lines + [(prefix + char * MAX_LINE)[:MAX_LINE] for char in "a1 "] + [(prefix * MAX_LINE)[:MAX_LINE]]
    )


def _literals(tree: _Tree) -> Iterator[int]:
    for operation, argument in tree:
        if operation is sre.LITERAL:
            yield argument
        for part in _parts(argument):
            yield from _literals(part)
