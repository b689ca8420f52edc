"""Offloads: what would hand the switch frames that no wire carries is turned off, and on again after."""

from __future__ import annotations

import array
import contextlib
import fcntl
import socket
import struct

_SIOCETHTOOL = 0x8946
_FEATURES = {
    "rx-checksum": (0x14, 0x15),
    "tx-checksum": (0x16, 0x17),
    "tcp-segmentation": (0x1E, 0x1F),
    "generic-segmentation": (0x23, 0x24),
    "generic-receive": (0x2B, 0x2C),
}
"""Name: (ETHTOOL_G..., ETHTOOL_S...) of linux/ethtool.h. Segmentation follows checksumming in the kernel."""


def disable(interface: str) -> dict[str, int]:
    """Turn ``interface``'s offloads off; return those that were on, for ``restore``.

    One that the driver fixes stays as it is: what it does to frames is seen, and told, when they arrive.
    """
    before = {}
    for name, (getter, _) in _FEATURES.items():
        with contextlib.suppress(OSError):
            before[name] = _ethtool(interface, getter, 0)
    changed = {name: value for name, value in before.items() if value}
    for name in changed:
        with contextlib.suppress(OSError):
            _ethtool(interface, _FEATURES[name][1], 0)
    return changed


def restore(interface: str, changed: dict[str, int]) -> None:
    """Turn on again what ``disable`` turned off; no error when the interface has gone."""
    for name, value in changed.items():
        with contextlib.suppress(OSError):
            _ethtool(interface, _FEATURES[name][1], value)


def _ethtool(interface: str, command: int, value: int) -> int:
    """Run one ethtool command that takes or returns a single number."""
    argument = array.array("I", [command, value])
    address, _ = argument.buffer_info()
    request = struct.pack("16sP", interface.encode(), address)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCETHTOOL, request)
    return argument[1]
