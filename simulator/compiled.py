"""The decorator of the inner loops: compiled by numba where it is installed, plain Python where it is not.

The functions are the same text either way, and give the same results; numba only makes them some hundred
times faster, which is what a cluster of a thousand GPUs takes (``pip install 'leveller[fast]'``). What it
compiles is kept in the user's cache folder, so only the first run waits for it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

try:
    from numba import config, njit
except ImportError:
    COMPILED = False
else:
    COMPILED = not config.DISABLE_JIT  # type: ignore[attr-defined]
"""Whether the inner loops are compiled."""

SOURCES = (
    *("affected", "agenda", "compiled", "engine", "layout", "least", "perlink", "pointer", "state"),
    "waterfill",
)
"""The modules whose text decides what is compiled."""


def _cache_folder() -> str:
    """Return a folder for what is compiled of the present sources, or nothing where there can be none.

    numba alone would go on using what it has as long as the file of the function called stays the same, even
    when one of the functions that it calls, and contains, has changed.
    """
    here = Path(__file__).parent
    text = b"".join((here / f"{name}.py").read_bytes() for name in SOURCES)
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = cache / "leveller" / hashlib.sha256(text).hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return ""
    return str(folder)


CACHE = _cache_folder() if COMPILED else ""
if CACHE:
    config.CACHE_DIR = CACHE  # type: ignore[attr-defined]


def compiled(function: Function) -> Function:
    """Compile ``function`` on its first call, with Python's own float semantics."""
    return cast("Function", njit(cache=bool(CACHE), error_model="numpy")(function)) if COMPILED else function


def inlined(function: Function) -> Function:
    """Compile ``function`` as `compiled` does, into each that calls it."""
    if not COMPILED:
        return function
    return cast("Function", njit(cache=bool(CACHE), error_model="numpy", forceinline=True)(function))
