"""Whether connections have come or gone, for far less than listing them costs.

Listing them walks the kernel's whole hash table of connections (of all namespaces: megabytes on a large host,
however few there are). The TCP counters of ``/proc/net/snmp`` say whether there is reason to.
"""

from __future__ import annotations

import os

_NAMES = (b"ActiveOpens", b"PassiveOpens", b"CurrEstab")
"""Each opened connection counts up one of the first two, each closed one leaves CurrEstab."""


class TcpActivity:
    """Watches the counters of the calling thread's network namespace. Close it when done."""

    def __init__(self, proc: str) -> None:
        """``proc`` is a mounted proc file system. Raises OSError where it is not."""
        self._descriptor = os.open(f"{proc}/thread-self/net/snmp", os.O_RDONLY | os.O_CLOEXEC)
        self._last: tuple[int, ...] = ()

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def changed(self) -> bool:
        """Say whether a connection has opened or closed since the last call; true at the first."""
        counters = parse(os.pread(self._descriptor, 65_536, 0))
        changed, self._last = counters != self._last, counters
        return changed


def parse(text: bytes) -> tuple[int, ...]:
    """Return the three counters in a ``/proc/net/snmp``. Raises OSError where they are not in it."""
    lines = [line.split() for line in text.splitlines() if line.startswith(b"Tcp:")]
    try:
        names, values = lines
        return tuple(int(values[names.index(name)]) for name in _NAMES)
    except (ValueError, IndexError):
        raise OSError("/proc/net/snmp has no TCP counters") from None
