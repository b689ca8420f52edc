"""Why a control-plane operation on the switch's state failed, in the codes that P4Runtime reports."""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """The google.rpc.Code values used here."""

    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    OUT_OF_RANGE = 11


class TableError(Exception):
    """A refused operation on a table, action profile, extern or replication entry; nothing was changed."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
