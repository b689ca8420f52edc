"""Errors as P4Runtime reports them: of an RPC, or of each update in a batch (Error Reporting Messages)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import grpc
from finsy.proto import p4r, rpc_status
from grpc import StatusCode

from softswitch.errors import TableError

SPACE = "leveller-softswitch"
"""The error space of this target, in every p4.v1.Error."""


class P4Error(Exception):
    """A request, or one update of it, that is refused: a canonical code and a sentence for the developer."""

    def __init__(self, code: StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def invalid(message: str) -> P4Error:
    """Return an INVALID_ARGUMENT error; the most common kind."""
    return P4Error(StatusCode.INVALID_ARGUMENT, message)


def number(code: StatusCode) -> int:
    """Return the canonical number (google.rpc.Code) of a gRPC status code."""
    value: int = code.value[0]
    return value


def from_table_error(error: TableError) -> P4Error:
    """Turn what a table or an extern refuses into what P4Runtime says; the code's names are the same."""
    return P4Error(StatusCode[error.code.name], error.message)


def abort(context: grpc.ServicerContext, error: P4Error) -> NoReturn:
    """End the RPC with ``error`` and no details: it failed before any single update or request was tried."""
    context.abort(error.code, error.message)
    raise AssertionError  # abort raises; this is for the type checker


def abort_batch(context: grpc.ServicerContext, what: str, errors: Sequence[P4Error | None]) -> NoReturn:
    """End the RPC with UNKNOWN and a p4.v1.Error for each update or request, in order; None: it succeeded."""
    status = rpc_status.Status(code=number(StatusCode.UNKNOWN), message=what)
    for error in errors:
        detail = p4r.Error()
        if error is not None:
            detail.canonical_code = number(error.code)
            detail.message = error.message
            detail.space = SPACE
            detail.code = number(error.code)
        status.details.add().Pack(detail)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(StatusCode.UNKNOWN, what)
    raise AssertionError  # abort raises; this is for the type checker
