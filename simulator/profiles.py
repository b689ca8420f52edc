"""What jobs of known models compute and send per iteration, as far as it has been published.

``bytes`` are what a host reduces in the ring all-reduce at the end of an iteration; where the source measures
per GPU and each GPU of a host has a ring of its own (tensor parallelism of 8), they are those of 8 GPUs. Crux
published iteration times alone (a 24-layer GPT-3 variant on 64 GPUs, 1.53 s), which makes no profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

CASSINI = "CASSINI (NSDI 2024)"
MONKEYTREE = "MonkeyTree, its artifact"
MIB, GB = float(2**20), 1e9
"""CASSINI's megabytes are MiB: its VGG16 is 138.4 million numbers of 4 bytes."""


@dataclass(frozen=True, slots=True)
class Profile:
    """An iteration: ``exchanges`` times compute and all-to-all, or compute once; then an all-reduce.

    ``compute_s`` is the computing before each exchange, or the whole of it; None where it is not public.
    """

    source: str
    bytes: float
    compute_s: float | None = None
    exchanges: int = 0
    exchange_bytes: float = 0.0

    def section(self) -> dict[str, object]:
        """Return the keys of a scenario's job that say the same."""
        if self.exchanges:
            exchange = {"bytes": self.exchange_bytes, "collective": "all-to-all"}
            steps = [{"compute_s": self.compute_s}, exchange]
            return {"phases": [*steps * self.exchanges, {"bytes": self.bytes}]}
        known: dict[str, object] = {"bytes": self.bytes}
        return known if self.compute_s is None else {**known, "compute_s": self.compute_s}


PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        "vgg16": Profile(CASSINI, 528 * MIB, 0.141),
        "vgg19": Profile(CASSINI, 549 * MIB),
        "resnet50": Profile(CASSINI, 98 * MIB),
        "bert": Profile(CASSINI, 450 * MIB),
        "roberta": Profile(CASSINI, 800 * MIB),
        "gpt-2": Profile(CASSINI, 1623 * MIB),  # the smallest of its range, which goes to 27,000
        "gpt-7b-dp": Profile(MONKEYTREE, 13 * GB, 0.113),
        "gpt-13b-dp": Profile(MONKEYTREE, 26 * GB, 0.215),
        "llama2-70b-fsdp": Profile(MONKEYTREE, 137.4 * GB, 2.378),
        "llama3-70b-fsdp": Profile(MONKEYTREE, 137.4 * GB, 5.258),
        "llama2-70b-tp8": Profile(MONKEYTREE, 8 * 17.18 * GB, 0.341),
        "llama3-70b-tp8": Profile(MONKEYTREE, 8 * 17.18 * GB, 0.743),
        "gpt-oss-20b": Profile(MONKEYTREE, 8.8 * GB, 0.133, exchanges=24, exchange_bytes=0.376 * GB),
        "gpt-oss-120b": Profile(MONKEYTREE, 11.42 * GB, 0.106, exchanges=24, exchange_bytes=0.376 * GB),
    }
)
"""By the name that a scenario's ``profile`` gives."""

COMPLETE = tuple(name for name, profile in PROFILES.items() if profile.compute_s is not None)
"""Those with a public compute time: a trace's jobs can be any of them."""


def fill(job: Mapping[str, object]) -> dict[str, object]:
    """Return ``job`` with what its ``profile`` knows and it does not say. ValueError: no such profile."""
    name = job["profile"]
    if not isinstance(name, str) or name not in PROFILES:
        raise ValueError(f"there is no profile {name!r}: choose one of {', '.join(PROFILES)}")
    known = PROFILES[name].section()
    if "comm_s" in job:
        known.pop("bytes", None)
    return {**known, **job}
