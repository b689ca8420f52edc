"""Text from strangers, made fit for a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return ``text`` with line breaks and other control characters escaped, as Python would write them."""
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
