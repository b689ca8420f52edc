"""What all commands' logs share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leveller.text import printable

if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger


def escape_controls(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Escape what is not printable in a log line's values (a structlog processor, the last but the renderer).

    Texts in a log come from peers, switches and files too; none of them may move the cursor of the terminal
    that the log is read on, or start a line of its own.
    """
    for key, value in event.items():
        if value is None or isinstance(value, bool | int | float):
            continue
        text = str(value)
        if not text.isprintable():
            event[key] = printable(text)
    return event
