"""RDMA connections (RoCEv2 queue pairs) of this host's jobs.

The kernel lists queue pairs with the processes that own them (``rdma -j resource show qp``): the local and
the remote number, but neither an address nor bytes. The source address is that of the port's RoCEv2 GID; the
peer's is found by the controller, to which the peer's host reports the same numbers the other way round.

RoCEv2 is UDP to port 4791. Where the application leaves the flow label 0, as NCCL does, Linux derives the
source port from the two numbers (``rdma_get_udp_sport``), see `source_port`. It has 14 bits, and applications
may fix it, so that several queue pairs can share one 5-tuple. Therefore a flow of a queue pair always carries
the destination queue pair that its packets have in their BTH: switches know it by that, whatever its port.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from ipaddress import IPv6Address
from pathlib import Path
from typing import NamedTuple

import structlog

ROCE_PORT = 4791

COMMAND = ("rdma", "-j", "resource", "show", "qp")
SYSFS = Path("/sys/class/infiniband")

PERIOD_NS = 1_000_000_000
"""How often queue pairs are listed where there is an RDMA device: they live as long as a communicator."""

TIMEOUT_NS = 10_000_000_000
"""A listing that takes longer is given up."""

GIDS_NS = 30_000_000_000
"""How long the addresses of a device's port are taken for known."""

MAX_OUTPUT = 32 << 20
"""Bytes of a listing that are read."""

_CONNECTED = ("RC", "UC", "XRC_INI")
"""Types whose queue pairs are one half of a connection, and send."""
_MAX_NUMBER = 1 << 24


class QueuePair(NamedTuple):
    """A connected queue pair of a process."""

    device: str
    port: int
    local: int
    remote: int
    pid: int


class JobQueuePair(NamedTuple):
    """A queue pair of a job, as it is reported."""

    source: bytes
    """4 or 16 bytes."""
    job: str
    local: int
    remote: int
    communicator: int = 0
    """NCCL's, where its plugin has told; 0 where not."""

    @property
    def source_port(self) -> int:
        """The UDP source port of its packets."""
        return source_port(self.local, self.remote)


def source_port(local: int, remote: int) -> int:
    """Return the UDP source port that Linux gives to a queue pair (``rdma_get_udp_sport``)."""
    value = local * remote
    value ^= value >> 20
    value ^= value >> 40
    value &= 0xFFFFF
    return (value & 0x3FFF) ^ (value & 0xFC000) >> 14 | 0xC000


def parse(text: bytes) -> list[QueuePair]:
    """Read ``rdma -j resource show qp``; return the connected ones that send and belong to a process.

    Raises ValueError where it is not that. Entries without a remote number or a pid are the kernel's own, or
    not connected (yet); what makes no sense is left out.
    """
    try:
        entries = json.loads(text or b"[]")
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(entries, list):
        raise ValueError("it is not a list")
    found: list[QueuePair] = []
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("type") not in _CONNECTED or entry.get("state") != "RTS":
            continue
        device, port, pid = entry.get("ifname"), _number(entry, "port", 256), _number(entry, "pid", 1 << 31)
        local, remote = _number(entry, "lqpn", _MAX_NUMBER), _number(entry, "rqpn", _MAX_NUMBER)
        if isinstance(device, str) and port and local and remote and pid:
            found.append(QueuePair(device, port, local, remote, pid))
    return found


def _number(entry: Mapping[str, object], key: str, limit: int) -> int:
    """Return a number of ``entry``; 0 where it is none from 1 to below ``limit``."""
    value = entry.get(key)
    return value if type(value) is int and 0 < value < limit else 0


def gid_addresses(sysfs: Path, device: str, port: int) -> list[bytes]:
    """Return the addresses of the RoCEv2 GIDs of a device's port, in order of index; 4 or 16 bytes each."""
    if "/" in device or device.startswith("."):
        return []
    base = sysfs / device / "ports" / str(port)
    try:
        numbers = sorted(int(name) for name in os.listdir(base / "gids") if name.isdigit())
    except OSError:
        return []
    found: list[bytes] = []
    for number in numbers:
        try:
            kind = (base / "gid_attrs" / "types" / str(number)).read_text().strip()
            address = IPv6Address((base / "gids" / str(number)).read_text().strip())
        except (OSError, ValueError):
            continue  # an empty entry of the table cannot be read
        if kind == "RoCE v2" and not address.is_unspecified:
            found.append(address.ipv4_mapped.packed if address.ipv4_mapped else address.packed)
    return found


class QueuePairs:
    """Lists the queue pairs of this host's jobs now and then, without waiting for it. Close it when done."""

    def __init__(self, command: Sequence[str] = COMMAND, sysfs: Path = SYSFS) -> None:
        """``command`` prints what ``rdma -j resource show qp`` does; ``sysfs`` has a directory per device."""
        self._command = tuple(command)
        self._sysfs = sysfs
        self._due_ns = 0
        self._running: subprocess.Popen[bytes] | None = None
        self._output = -1
        self._listed: list[QueuePair] = []
        self._gids: dict[tuple[str, int], list[bytes]] = {}
        self._gids_ns = 0
        self._complained = False
        self._log = structlog.get_logger()

    def close(self) -> None:
        """End a listing that goes on."""
        if self._running is not None:
            self._running.kill()
            self._running.wait()
            self._running = None
        if self._output >= 0:
            os.close(self._output)
            self._output = -1

    def look(self, now_ns: int) -> None:
        """Begin a listing that is due, or take in one that has ended."""
        if now_ns >= self._gids_ns:
            self._gids.clear()
            self._gids_ns = now_ns + GIDS_NS
        if self._running is not None:
            if self._running.poll() is not None:
                self._take_in()
            elif now_ns >= self._due_ns - PERIOD_NS + TIMEOUT_NS:
                self._complain("it takes too long")
                self.close()
        elif now_ns >= self._due_ns:
            self._due_ns = now_ns + PERIOD_NS
            if self._has_devices():
                self._begin()
            else:
                self._listed = []

    def of_jobs(
        self,
        jobs: Mapping[int, str],
        addresses: Collection[bytes],
        communicator: Callable[[str, int], int] = lambda _job, _number: 0,
    ) -> list[JobQueuePair]:
        """Return the queue pairs of the processes in ``jobs`` (pid to job), in order.

        Each at the first RoCEv2 address of its port that is in ``addresses``; those without are none of ours
        to speak for. ``communicator`` says which one a job's local number belongs to.
        """
        found: set[JobQueuePair] = set()
        for pair in self._listed:
            if (job := jobs.get(pair.pid)) is None:
                continue
            port = pair.device, pair.port
            if port not in self._gids:
                self._gids[port] = gid_addresses(self._sysfs, *port)
            source = next((address for address in self._gids[port] if address in addresses), None)
            if source is not None:
                found.add(JobQueuePair(source, job, pair.local, pair.remote, communicator(job, pair.local)))
        return sorted(found)

    def _has_devices(self) -> bool:
        try:
            return bool(os.listdir(self._sysfs))
        except OSError:
            return False

    def _begin(self) -> None:
        if shutil.which(self._command[0]) is None:
            self._complain(f"there is no {self._command[0]}; install iproute2")
            return
        # A file in memory and no pipe: however much it prints, it never waits for us.
        self._output = os.memfd_create("leveller-rdma", os.MFD_CLOEXEC)
        self._running = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )

    def _take_in(self) -> None:
        assert self._running is not None
        code, text = self._running.returncode, os.pread(self._output, MAX_OUTPUT, 0)
        self.close()
        try:
            if code:
                raise ValueError(f"it ended with exit code {code}")
            self._listed, self._complained = parse(text), False
        except ValueError as error:
            self._complain(str(error))

    def _complain(self, reason: str) -> None:
        if not self._complained:
            self._log.warning(
                "RDMA connections cannot be listed", command=" ".join(self._command), reason=reason
            )
            self._complained = True
