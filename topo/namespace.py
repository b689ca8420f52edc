"""A private network, PID and mount namespace for a lab, so that nothing outside is touched or left behind.

The outer process only waits and passes signals on; the inner one is the namespace's PID 1, and whatever it
started, on whatever terms it ends, ends with it: processes by the kernel's rule for PID 1, interfaces and
queues with the network namespace, files with the tmpfs on the private ``/run``. Labs run side by side.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import IO

from leveller.errors import UserError

UNSHARE = ("unshare", "--net", "--pid", "--mount", "--fork", "--kill-child=KILL", "--mount-proc")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What ends a lab in good order."""

NICE = -10
"""Scheduling priority of everything in a lab."""

MARK = "LEVELLER_NAMESPACE"
"""Environment variable by which PID 1 of a lab differs from PID 1 of a container."""

DIRECTORY = Path("/run/leveller")
"""Where a lab keeps its files: on the namespace's own tmpfs."""


def inside() -> bool:
    """Whether this process is the first one of a lab's namespace."""
    return os.getpid() == 1 and MARK in os.environ


def run(
    command: list[str],
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    output: IO[bytes] | None = None,
) -> int:
    """Run ``command`` as PID 1 of new namespaces and return its exit code (128 + n after signal n).

    ``environment`` is added to this process's; ``output`` takes stdout and stderr where it is given.
    SIGINT, SIGTERM and SIGHUP are passed on; should this process be killed outright, the kernel kills
    the namespace with it. Raises UserError where namespaces cannot be made.
    """
    if os.geteuid() != 0:
        raise UserError("the lab needs root (it makes network namespaces)", "run it with sudo, or as root")
    for tool in ("setpriv", "unshare"):
        if not shutil.which(tool):
            raise UserError(f"{tool} is not on PATH", "apt-get install util-linux")
    trial = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True, check=False)
    if trial.returncode:
        raise UserError(
            f"namespaces cannot be made here ({trial.stderr.strip()})", "run where root may (CAP_SYS_ADMIN)"
        )
    # Blocked until `forward` can pass them on, and in the child, which inherits it, until `prepare`.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    # A session of its own: Ctrl-C reaches the lab once, by our hand, and not its switches and jobs first.
    child = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *UNSHARE, *command],
        start_new_session=True,
        env={**os.environ, **(environment or {}), MARK: "1"},
        cwd=cwd,
        stdout=output,
        stderr=output,
    )

    def forward(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001 (a signal handler's signature)
        # unshare itself holds signals back while it waits; its only child is the namespace's PID 1.
        for pid in Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text(encoding="ascii").split():
            os.kill(int(pid), signum)

    previous = [signal.signal(signum, forward) for signum in SIGNALS]
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    try:
        code = child.wait()
    finally:
        child.kill()  # of no effect once it has ended; after an exception, the end of the namespace
        child.wait()
        for signum, handler in zip(SIGNALS, previous, strict=True):
            signal.signal(signum, handler)
    return code if code >= 0 else 128 - code


def prepare() -> None:
    """Make a fresh namespace habitable: private ``/run``, loopback up, no IPv6 chatter from the kernel.

    After the first SIGINT, SIGTERM or SIGHUP (each becomes KeyboardInterrupt) further ones are ignored,
    so that clean-up is not cut short.
    """
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"], check=True)
    # The inherited /sys shows the outer network's interfaces.
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
    DIRECTORY.mkdir()
    # Switches and hosts stand for machines of their own: what else runs here should not slow them down.
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1", encoding="ascii")
    for signum in SIGNALS:
        signal.signal(signum, _interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _interrupt(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001 (a signal handler's signature)
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise KeyboardInterrupt


def real_time(pid: int) -> None:
    """Let process ``pid`` run as soon as it can, where root may ask for that.

    For what stands for hardware (switches, a job's ranks): each needs little time, but at once; a rank
    that wakes up 20 ms late on a busy machine is slower training that no scheduler of flows is to blame for.
    """
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(1))


def python(module: str, *arguments: str) -> list[str]:
    """Return the command that runs ``module`` with this very interpreter, whatever lies in the directory."""
    return [sys.executable, "-P", "-m", module, *arguments]
