"""The one kind of error that is meant for the person at the keyboard."""

from __future__ import annotations


class UserError(Exception):
    """Something the user can mend. Commands print it as one line on stderr and exit with code 2.

    ``what`` says what is wrong and where (file, field, interface), ``mend`` what to do about it. Line breaks
    and control characters that came in with a name or a path are escaped in the text.
    """

    def __init__(self, what: str, mend: str) -> None:
        super().__init__("".join(map(_shown, f"{what}: {mend}")))
        self.what = what
        self.mend = mend


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
