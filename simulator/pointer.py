"""How compiled functions pass the state on: as one pointer, not as sixty arrays.

A tuple of arrays is passed by value, some 400 machine words of it, and its arrays' references are counted at
every use; most functions of the inner loops do less work than that. So compiled code reads the state through
the table of its arrays' addresses, ``State.address``. Python keeps the arrays while it does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator.compiled import COMPILED, compiled
from simulator.state import TYPES, State


def by_pointer(state: State) -> State:
    """Return ``state`` as the compiled functions pass it on: with the same fields, only to index."""
    return state


Untyped = Any
"""numba's and LLVM's objects, which have no types."""

if COMPILED:
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba.core import cgutils, types
    from numba.core.imputils import lower_getattr_generic
    from numba.core.typing.templates import AttributeTemplate, infer_getattr
    from numba.extending import intrinsic, models, register_model
    from numba.np.numpy_support import from_dtype

    class StatePointer(types.Type):
        """numba's type of the pointer."""

    POINTER = StatePointer("StatePointer")
    FIELDS = {
        name: types.CPointer(from_dtype(np.dtype(kind)))  # type: ignore[no-untyped-call]
        for name, kind in TYPES.items()
    }
    register_model(StatePointer)(models.OpaqueModel)

    @infer_getattr
    class StateFields(AttributeTemplate):
        """The types of the fields: pointers to their arrays' first elements."""

        key = StatePointer

        def generic_resolve(self, _: Untyped, attr: str) -> Untyped:  # type: ignore[override]
            """Return the type of field ``attr``."""
            return FIELDS.get(attr)

    @lower_getattr_generic(StatePointer)  # type: ignore[no-untyped-call,untyped-decorator]
    def read_field(context: Untyped, builder: Untyped, _: Untyped, value: Untyped, name: str) -> Untyped:
        """Generate what reads a field of the table."""
        kind = context.get_value_type(FIELDS[name])
        table = builder.bitcast(value, kind.as_pointer())
        place = builder.gep(table, [ir.Constant(ir.IntType(64), State._fields.index(name))])
        address = builder.load(place)
        # The table never changes, so an address that was read once can be kept.
        address.set_metadata("invariant.load", builder.module.add_metadata([]))
        return address

    @intrinsic
    def at_address(_: Untyped, table: Untyped) -> Untyped:
        """Return the state whose table is the array ``table``."""

        def generate(context: Untyped, builder: Untyped, signature: Untyped, arguments: Untyped) -> Untyped:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            return builder.bitcast(array.data, cgutils.voidptr_t)

        return POINTER(table), generate

    @compiled
    def _by_pointer(state: State) -> State:
        return at_address(state.address)  # type: ignore[call-arg]

    by_pointer = _by_pointer
