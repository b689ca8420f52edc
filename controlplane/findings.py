"""What a check says of a switch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that does not fit, and its mend. ``switch`` None: it is not one switch's."""

    switch: str | None
    topic: str
    what: str
    mend: str

    def __str__(self) -> str:
        return f"{self.switch or 'all switches'}: {self.topic}: {self.what}: {self.mend}"


@dataclass(frozen=True, slots=True)
class Note:
    """Something worth knowing that is nothing to refuse for."""

    switch: str | None
    topic: str
    what: str

    def __str__(self) -> str:
        return f"{self.switch or 'all switches'}: {self.topic}: note: {self.what}"
