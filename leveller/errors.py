"""The one kind of error that is meant for the person at the keyboard."""

from __future__ import annotations

from leveller.text import printable


class UserError(Exception):
    """Something the user can mend. Commands print it as one line on stderr and exit with code 2.

    ``what`` says what is wrong and where (file, field, interface), ``mend`` what to do about it. Line breaks
    and control characters that came in with a name or a path are escaped in the text.
    """

    def __init__(self, what: str, mend: str) -> None:
        super().__init__(printable(f"{what}: {mend}"))
        self.what = what
        self.mend = mend
