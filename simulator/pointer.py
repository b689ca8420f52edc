"""How compiled functions pass the state on: as one pointer, not as fifty arrays.

A tuple of arrays is passed by value, some 400 machine words of it, and its arrays' references are counted at
every call; most functions of the inner loops do less work than that.
"""

from __future__ import annotations

from simulator.compiled import COMPILED, compiled
from simulator.state import State


def by_pointer(state: State) -> State:
    """Return ``state`` as the compiled functions pass it on: with the same fields."""
    return state


if COMPILED:
    from numba.core import types
    from numba.experimental import structref

    @structref.register
    class StatePointer(types.StructRef):
        """numba's type of the pointer."""

    class _Pointer(structref.StructRefProxy):
        """What compiled code calls to make one."""

    structref.define_constructor(_Pointer, StatePointer, State._fields)  # type: ignore[no-untyped-call]

    @compiled
    def _by_pointer(state: State) -> State:
        return _Pointer(*state)  # type: ignore[no-untyped-call,return-value]

    by_pointer = _by_pointer
