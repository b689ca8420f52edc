"""Packets per second that the switch forwards through leveller.p4, beside bmv2 where it is installed.

One hop over veth pairs in a network namespace of its own (root). Every packet is looked up by 5-tuple, ranked
and routed. The figure is the highest rate with less than 0.1 % loss, by the kernel's own counters. bmv2
(simple_switch_grpc, logging off) is measured in the same run when it is on PATH.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import logging
import multiprocessing
import os
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import finsy as fy
from pyroute2 import IPRoute
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

import p4src
from softswitch import offloads
from softswitch.sender import Sender

SIZES = (64, 1500, 9000)
"""Bytes of an Ethernet frame, without its check sequence."""
MAX_LOSS = 0.001
TRIAL_SECONDS = 1.0
HIGHEST = 250_000
"""Packets/s at which the search gives up: the sender makes more, but hardly any switch in software does."""
PRECISION = 1.04
"""The search ends when the highest rate that passed and the lowest that did not are this close (ratio)."""
MTU = 9000
QUEUE_DEPTH = 1000
ADDRESS = "127.0.0.1:50051"
INSIDE = "LEVELLER_BENCH_NAMESPACE"


@dataclass(frozen=True)
class Result:
    """One switch at one frame size."""

    switch: str
    size: int
    packets_per_second: int
    """Highest offered rate with a loss below 0.1 %."""
    bits_per_second: int


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--sizes", default=",".join(map(str, SIZES)), help="frame sizes, default: 64,1500,9000"
    )
    given = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("error: the benchmark sets up interfaces: run as root")
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])
    logging.getLogger("finsy").setLevel(logging.ERROR)  # it warns that no switch here speaks gNMI
    results = measure([int(size) for size in given.sizes.split(",")])
    if given.json:
        print(json.dumps([asdict(result) for result in results]))
    else:
        Console().print(table(results))


def measure(sizes: list[int]) -> list[Result]:
    """Run every switch there is at every size."""
    _set_up_interfaces()
    switches = ["softswitch"] + (["bmv2"] if shutil.which("simple_switch_grpc") else [])
    results = []
    here, there = multiprocessing.Pipe()
    generator = multiprocessing.get_context("fork").Process(target=_generate, args=(there,), daemon=True)
    generator.start()
    try:
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("measuring", total=len(switches) * len(sizes))
            # Both at one size, then the next: a machine that is busy for a while is fair to both.
            for size, switch in itertools.product(sizes, switches):
                progress.update(task, description=f"{switch}, {size} bytes")
                with _running(switch):
                    asyncio.run(_configure())
                    rate = _search(here, size)
                results.append(Result(switch, size, rate, rate * size * 8))
                progress.advance(task)
    finally:
        generator.kill()
        generator.join()
    return results


def table(results: list[Result]) -> Table:
    """Lay out results: a row per size, a column per switch, and the ratio."""
    by_switch: dict[str, dict[int, Result]] = {}
    for result in results:
        by_switch.setdefault(result.switch, {})[result.size] = result
    peer = by_switch.get("bmv2")
    layout = Table(title="Packets/s through leveller.p4 with less than 0.1 % loss, one hop")
    for column in ("frame, bytes", *by_switch, *(["ratio"] if peer else [])):
        layout.add_column(column, justify="right")
    for size, own in by_switch["softswitch"].items():
        cells = [f"{runs[size].packets_per_second:,}" for runs in by_switch.values()]
        ratio = [f"{own.packets_per_second / max(1, peer[size].packets_per_second):.1f}"] if peer else []
        layout.add_row(f"{size:,}", *cells, *ratio)
    return layout


def _set_up_interfaces() -> None:
    with IPRoute() as netlink:
        for pair in (("source", "port1"), ("port2", "sink")):
            netlink.link("add", ifname=pair[0], kind="veth", peer=pair[1])
            for name in pair:
                Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
                offloads.disable(name)
                netlink.link("set", index=netlink.link_lookup(ifname=name)[0], mtu=MTU, state="up")
        netlink.link("set", index=netlink.link_lookup(ifname="lo")[0], state="up")


@contextmanager
def _running(switch: str) -> Iterator[None]:
    interfaces = ["-i", "1@port1", "-i", "2@port2", "--device-id", "1"]
    target = ["--", "--grpc-server-addr", ADDRESS, "--cpu-port", "510", "--priority-queues", "8"]
    match switch:
        case "softswitch":
            command = [sys.executable, "-m", "softswitch", *interfaces, "--queue-depth", str(QUEUE_DEPTH)]
            command += ["--log-level", "warn", "--no-p4", *target]
        case _:
            command = ["simple_switch_grpc", *interfaces, "--log-level", "off", "--no-p4", *target]
    # bmv2 complains on stderr of every interface that it does not find under /sys, which a namespace hides.
    stderr = subprocess.DEVNULL if switch == "bmv2" else None
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr) as process:
        try:
            _wait_for_server(process)
            yield
        finally:
            process.terminate()
            process.wait(10)


def _wait_for_server(process: subprocess.Popen[bytes]) -> None:
    host, port = ADDRESS.split(":")
    for _ in range(200):
        if process.poll() is not None:
            sys.exit(f"error: the switch ended with code {process.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) == 0:
                return
        time.sleep(0.1)
    sys.exit("error: the switch does not serve P4Runtime")


async def _configure() -> None:
    """Push the program; rank the measured flow and route it out of port 2."""
    program = p4src.program("v1model")
    options = fy.SwitchOptions(p4info=program.p4info, p4blob=program.json, device_id=1)
    mac = 0x020000000002
    async with fy.Switch("switch", ADDRESS, options) as switch:
        await switch.write(
            [
                +fy.P4TableEntry(
                    "flow_group_v4",
                    match=fy.P4TableMatch(
                        src="10.0.1.1", dst="10.0.2.1", protocol=17, sport=1000, dport=2000
                    ),
                    action=fy.P4TableAction("set_group", group=1, slot=1),
                ),
                +fy.P4TableEntry(
                    "group_level",
                    match=fy.P4TableMatch(bank=0, group=1),
                    action=fy.P4TableAction("set_level", level=3, guard_us=0, slack_us=0),
                ),
                +fy.P4TableEntry(
                    "level_queue",
                    match=fy.P4TableMatch(level=3),
                    action=fy.P4TableAction("set_queue", queue=3, dscp=0, rewrite=0),
                ),
                +fy.P4TableEntry(
                    "ipv4_lpm",
                    match=fy.P4TableMatch(dst="10.0.2.0/24"),
                    action=fy.P4TableAction("set_nhop", port=2, dmac=mac),
                ),
            ]
        )


def _frame(size: int) -> bytes:
    headers = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:fe") / IP(src="10.0.1.1", dst="10.0.2.1")
    packet = headers / UDP(sport=1000, dport=2000)
    return bytes(packet / bytes(size - len(packet)))


def _search(generator: Connection, size: int) -> int:
    """Return the highest rate that passes: doubling until one fails, then bisecting."""
    passed, failed = 0.0, float(HIGHEST)
    rate = 4000.0
    while rate < failed:
        if _passes(generator, size, rate):
            passed, rate = rate, rate * 2
        else:
            failed = rate
    while failed > passed * PRECISION and failed > 1000:
        middle = (passed + failed) / 2
        if _passes(generator, size, middle):
            passed = middle
        else:
            failed = middle
    return round(passed)


def _passes(generator: Connection, size: int, rate: float) -> bool:
    """Whether the switch forwards all but 0.1 % at ``rate``; it has two chances: machines are not idle."""
    for _ in range(2):
        before = _received()
        generator.send((_frame(size), rate))
        sent, seconds = generator.recv()
        time.sleep(0.3)
        if sent / seconds >= 0.97 * rate and _received() - before >= sent * (1 - MAX_LOSS):
            return True
    return False


def _received() -> int:
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == "sink":
            return int(counters.split()[1])
    raise AssertionError("the receiver's interface has gone")


def _generate(orders: Connection) -> None:
    """Send frames at the rates asked for, in a process of its own; answer (sent, seconds)."""
    lost: Counter[str] = Counter()
    sender = Sender("source", 0, MTU, QUEUE_DEPTH, lost, lambda reason: lost.update([reason]))
    while True:
        frame, rate = orders.recv()
        start = now = time.perf_counter()
        end = start + TRIAL_SECONDS
        sent = 0
        while now < end:
            due = int((now - start) * rate) - sent
            # After a pause that was not ours, do not make up for all of it in one burst.
            for _ in range(min(due, 64)):
                sender.put(frame)
            sender.flush()
            sent += min(max(due, 0), 64)
            if due < 8:
                time.sleep(0.00005)
            now = time.perf_counter()
        orders.send((sent, now - start))


if __name__ == "__main__":
    main()
