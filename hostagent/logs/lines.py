"""Bytes of a log into clean lines of text, whatever the bytes are."""

from __future__ import annotations

import re

from hostagent.logs.wrappers import unwrap

MAX_LINE = 65_536
"""Longer lines are dropped and counted: no iteration line comes near, and memory stays bounded."""

# ECMA-48: control sequences (colours, cursor), and operating system commands (titles, links).
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n\r]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_ENDS = re.compile(rb"[\r\n]")


class LineSplitter:
    r"""Turns chunks of a log into whole lines.

    ``\n`` and ``\r`` both end a line (a progress bar redraws with ``\r``); ANSI sequences and NULs (the
    hole that a truncation leaves) go, so does what a container runtime wraps around a line, broken UTF-8
    becomes U+FFFD, empty lines are skipped, and a line that is not ended yet is kept for the next chunk.
    """

    def __init__(self) -> None:
        self._partial = bytearray()
        self._discarding = False
        self.too_long = 0
        """Lines dropped because they were longer than MAX_LINE bytes."""

    @property
    def unfinished(self) -> int:
        """Bytes of the line that is not ended yet."""
        return len(self._partial)

    def reset(self) -> None:
        """Forget the unfinished line: what comes next does not continue it."""
        self._partial.clear()
        self._discarding = False

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that ``data`` completes, in order."""
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        lines: list[str] = []
        if end:
            for line in _ENDS.split(bytes(self._partial) + data[: end - 1]):
                if self._discarding:
                    self._discarding = False
                elif len(line) > MAX_LINE:
                    self.too_long += 1
                elif line:
                    lines += _clean(line)
            self._partial.clear()
        if not self._discarding:
            self._partial += data[end:]
            if len(self._partial) > MAX_LINE:
                self.too_long += 1
                self.reset()
                self._discarding = True
        return lines


def _clean(line: bytes) -> list[str]:
    text = unwrap(line.decode("utf-8", "replace"))
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    text = text.replace("\0", "")
    # What a wrapper holds may be several lines: a progress bar redrawn.
    return (
        [part for part in re.split("[\r\n]", text) if part]
        if "\r" in text or "\n" in text
        else [text] * bool(text)
    )
