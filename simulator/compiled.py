"""The decorator of the inner loops: compiled by numba where it is installed, plain Python where it is not.

The functions are the same text either way, and give the same results; numba only makes them some hundred
times faster, which is what a cluster of a thousand GPUs takes (``pip install 'leveller[fast]'``). What it
compiles is kept beside the modules, so only the first run waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

try:
    from numba import config, njit
except ImportError:
    COMPILED = False
else:
    COMPILED = not config.DISABLE_JIT  # type: ignore[attr-defined]
"""Whether the inner loops are compiled."""


def compiled(function: Function) -> Function:
    """Compile ``function`` on its first call, with Python's own float semantics."""
    return cast("Function", njit(cache=True)(function)) if COMPILED else function
