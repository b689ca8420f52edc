"""What the host agent's tests share: network namespaces, real training processes, waiting."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyroute2 import IPRoute, netns

from tests.hostagent.fuse import HangingFiles, hanging_files

TRAINER = """
import os, socket, sys, time
role, address, port, lines, pause = sys.argv[1:6]
if role == "listen":
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.create_server((address, int(port)), family=family)
    connection, _ = server.accept()
elif role == "connect":
    connection = socket.create_connection((address, int(port)))
    print(f"connected {time.monotonic_ns()}", flush=True)
    connection.sendall(bytes(100_000))
elif role == "store":
    connection = socket.create_connection((address, int(port)))
    connection.sendall(bytes(100))
for number in range(1, int(lines) + 1):
    time.sleep(float(pause))
    print(f" iteration {number:8d}/{1000:8d} | consumed samples: {8:12d} | "
          f"elapsed time per iteration (ms): {float(pause) * 1000:.1f} | lm loss: 3.1E+00 |", flush=True)
if role == "fail":
    raise RuntimeError("on purpose")
if role != "end":
    time.sleep(300)
"""


@dataclass
class Trainers:
    """Starts training processes and ends those it started."""

    directory: Path
    # A name of its own: others may run training jobs on this machine.
    job: str = field(default_factory=lambda: f"job-{uuid.uuid4().hex[:8]}")
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(
        self,
        *arguments: object,
        job: str | None = None,
        rank: int = 0,
        world_size: int = 2,
        namespace: str | None = None,
        log: str = "train.log",
        mode: str = "wb",
        program: str = TRAINER,
        **environ: str,
    ) -> subprocess.Popen[bytes]:
        """Start ROLE ADDRESS PORT LINES PAUSE as one rank of ``job``; its stdout goes to ``log``."""
        given = [str(argument) for argument in arguments] or ["idle", "-", "0", "0", "0"]
        prefix = ["ip", "netns", "exec", namespace] if namespace else []
        environment = {
            "PATH": os.environ["PATH"],
            "RANK": str(rank),
            "WORLD_SIZE": str(world_size),
            "LOCAL_RANK": "0",
            "MASTER_ADDR": "10.0.0.1",
            "MASTER_PORT": "29500",
            "TORCHELASTIC_RUN_ID": job or self.job,
            **environ,
        }
        with (self.directory / log).open(mode) as stdout:
            process = subprocess.Popen(
                [*prefix, sys.executable, "-c", program, *given],
                env=environment,
                stdout=stdout,
                stderr=stdout if given[0] == "fail" else subprocess.DEVNULL,
            )
        self.running.append(process)
        return process

    def end(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()


@pytest.fixture
def trainers(tmp_path: Path) -> Iterator[Trainers]:
    started = Trainers(tmp_path)
    yield started
    started.end()


@dataclass(frozen=True)
class TwoHosts:
    """Two network namespaces, ``a`` and ``b``, joined by interfaces ``data0`` in each."""

    a: str
    b: str
    a_addresses: tuple[str, str] = ("10.201.0.1", "fd00:201::1")
    b_addresses: tuple[str, str] = ("10.201.0.2", "fd00:201::2")
    a_mac: str = "02:c9:00:00:00:01"
    b_mac: str = "02:c9:00:00:00:02"

    @staticmethod
    def inside(namespace: str, function: Callable[[], Any]) -> Any:
        """Run ``function`` on a thread that is in ``namespace``; return or raise what it does."""

        def body() -> Any:
            netns.setns(namespace)
            return function()

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(body).result()


def _set_up(interface: str, addresses: tuple[str, str], mac: str) -> None:
    """Make ``interface`` of this namespace its data0, with its addresses."""
    with IPRoute() as there:
        index = there.link_lookup(ifname=interface)[0]
        there.link("set", index=index, ifname="data0", address=mac)
        there.link("set", index=index, state="up")
        there.link("set", index=there.link_lookup(ifname="lo")[0], state="up")
        there.addr("add", index=index, address=addresses[0], prefixlen=24)
        there.addr("add", index=index, address=addresses[1], prefixlen=64, flags=0x02)  # no DAD wait


@pytest.fixture
def two_hosts() -> Iterator[TwoHosts]:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    tag = uuid.uuid4().hex[:8]
    hosts = TwoHosts(f"lvagent-{tag}-a", f"lvagent-{tag}-b")
    with contextlib.ExitStack() as undo:
        for name in (hosts.a, hosts.b):
            # Not netns.create: it forks, and a fork of a process with gRPC's threads may hang.
            subprocess.run(["ip", "netns", "add", name], check=True)
            undo.callback(netns.remove, name)
        # Both ends get their last names in their namespaces only: data0 here would be one too many.
        with IPRoute() as here:
            here.link("add", ifname=f"lv{tag}a", kind="veth", peer={"ifname": f"lv{tag}b"})
            for end, name in (("a", hosts.a), ("b", hosts.b)):
                here.link("set", index=here.link_lookup(ifname=f"lv{tag}{end}")[0], net_ns_fd=name)
        for end, name, addresses, mac in (
            ("a", hosts.a, hosts.a_addresses, hosts.a_mac),
            ("b", hosts.b, hosts.b_addresses, hosts.b_mac),
        ):
            hosts.inside(name, partial(_set_up, f"lv{tag}{end}", addresses, mac))
        yield hosts


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """Return a function that waits until a condition holds, and returns what it gave."""

    def wait(condition: Callable[[], Any], timeout_s: float = 10.0) -> Any:
        deadline = time.monotonic() + timeout_s
        while not (value := condition()):
            assert time.monotonic() < deadline, "it never became true"
            time.sleep(0.01)
        return value

    return wait


@pytest.fixture
def eventually_async() -> Callable[..., Awaitable[Any]]:
    """Return the same for coroutines."""

    async def wait(condition: Callable[[], Any], timeout_s: float = 10.0) -> Any:
        deadline = time.monotonic() + timeout_s
        while not (value := condition()):
            assert time.monotonic() < deadline, "it never became true"
            await asyncio.sleep(0.01)
        return value

    return wait


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[HangingFiles]:
    """A file system that can be stopped; skips where none can be mounted."""
    directory = tmp_path / "hanging"
    directory.mkdir()
    with contextlib.ExitStack() as mounted:
        try:
            files = mounted.enter_context(hanging_files(directory))
        except OSError as error:
            pytest.skip(str(error))
        yield files
