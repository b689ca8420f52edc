r"""What container runtimes wrap around each line that a container writes.

- Docker's ``json-file``: ``{"log":"iter 1: ..\n","stream":"stdout","time":"2026-01-31T12:00:00.0Z"}``;
- the CRI's (containerd, CRI-O, podman's ``k8s-file``): ``2026-01-31T12:00:00.0Z stdout F iter 1: ..``.
"""

from __future__ import annotations

import json
import re

_CRI = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.+Z-]{8,32} std(?:out|err) [FP](?::\w{1,8})* ")


def unwrap(text: str) -> str:
    """Return what the container wrote; ``text`` itself where nothing is wrapped around it."""
    if text.startswith('{"log":"'):
        try:
            entry = json.loads(text)
        except (ValueError, RecursionError):
            return text
        log = entry.get("log") if isinstance(entry, dict) else None
        return log if isinstance(log, str) else text
    if text[4:5] == "-" and (found := _CRI.match(text)):
        return text[found.end() :]
    return text
