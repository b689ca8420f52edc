"""What the host agent costs its host: CPU share and memory with eight idle jobs, and how fast it tells news.

    python bench/agent.py [--jobs 8] [--seconds 20] [--sockets 10000] [--json]

Runs the real agent in a network namespace of its own, with real training-like processes, their logs and
their TCP connections, and a gRPC server for a controller. ``idle`` is with jobs that log nothing and send
nothing; ``busy`` with every job logging and sending ten times a second; ``sockets`` is idle with so many
other TCP connections to another host, one of which comes and goes each second, nobody's or one more job's.
``scans`` are the listing of these by itself, done once a second and its CPU time counted, when the
connections are nobody's, and when all are one job's and silent; the floor beside them is the kernel's own
work, the answer thrown away unread. The other floor is a Python process with gRPC that only sends ten empty
messages a second. News are timed from the event to the controller's having the Report.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from leveller_proto import agent_pb2 as pb
from leveller_proto import agent_pb2_grpc

HERE, THERE = "10.203.0.1", "10.203.0.2"

JOB = """
import os, socket, sys, time
address, port, period = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
connection = socket.create_connection((address, port))
print("opened", time.monotonic_ns(), flush=True)
number = 0
while True:
    time.sleep(period or 1000)
    number += 1
    connection.sendall(bytes(10_000))
    print(f" iteration {number:8d}/  500000 | consumed samples: {number:12d} | "
          f"elapsed time per iteration (ms): {period * 1000:.1f} | at {time.monotonic_ns()} |", flush=True)
"""

PEER = """
import selectors, socket, sys
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
chosen = selectors.DefaultSelector()
chosen.register(server, selectors.EVENT_READ)
while True:
    for key, _ in chosen.select():
        if key.fileobj is server:
            chosen.register(server.accept()[0], selectors.EVENT_READ)
        else:
            key.fileobj.recv(1 << 16)
"""

CROWD_JOB = "bench-crowd"

CROWD = """
import socket, sys, time
address, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
connections = [socket.create_connection((address, port)) for _ in range(count)]
print("ready", flush=True)
while True:
    connections[0].close()
    connections[0] = socket.create_connection((address, port))
    time.sleep(1)
"""

SCANS = """
import json, socket, sys, time
from hostagent.flows.inet_diag import InetDiag
from hostagent.flows.tracker import FlowTracker
source, scans = socket.inet_aton(sys.argv[1]), int(sys.argv[2])
diag = InetDiag()
def listed(tracker, owner):
    listing = diag.connections(tracker.ignored, tracker.known)
    owners = lambda: {one.inode: owner for one in listing.connections} if owner else {}
    tracker.update(listing, owners, time.monotonic_ns())
def floor():
    for _ in diag._dump():
        pass
def cost(work):
    for _ in range(3):
        work()
    spent = []
    for _ in range(scans):
        time.sleep(1)
        begun = time.thread_time_ns()
        work()
        spent.append(time.thread_time_ns() - begun)
    return sorted(spent)[len(spent) // 2] / 1e7
nobodys, ours = FlowTracker([source]), FlowTracker([source])
print(json.dumps([
    ["scans: floor, the kernel's own work", cost(floor)],
    ["scans: connections of no job", cost(lambda: listed(nobodys, None))],
    ["scans: all of them one job's", cost(lambda: listed(ours, "job"))],
]))
"""

FLOOR = """
import asyncio, sys, grpc
from leveller_proto import agent_pb2 as pb, agent_pb2_grpc
async def messages():
    while True:
        yield pb.AgentMessage(report=pb.Report())
        await asyncio.sleep(0.1)
async def main():
    async with grpc.aio.insecure_channel(sys.argv[1]) as channel:
        async for _ in agent_pb2_grpc.AgentsStub(channel).Connect(messages()):
            pass
asyncio.run(main())
"""


@dataclass
class Controller(agent_pb2_grpc.AgentsServicer):
    """Notes when what arrived."""

    flows: dict[int, float] = field(default_factory=dict)
    """Source port -> ns from its opening to the Report that has it."""
    iterations: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Job -> (iterations, monotonic ns of arrival) of each Report that has it."""

    async def Connect(  # noqa: N802 (gRPC's name)
        self,
        request_iterator: AsyncIterator[pb.AgentMessage],
        context: object,  # noqa: ARG002
    ) -> AsyncIterator[pb.ControllerMessage]:
        """Serve one agent."""
        yield pb.ControllerMessage(welcome=pb.Welcome(protocol_version=1, controller="bench"))
        async for message in request_iterator:
            now = time.monotonic_ns()
            for flow in (flow for flow in message.report.flows if flow.job != CROWD_JOB):
                self.flows.setdefault(flow.tuple.source_port, now)
            for job in message.report.jobs:
                self.iterations.setdefault(job.job, []).append((job.iterations, now))


@contextlib.contextmanager
def namespaces() -> Iterator[tuple[str, str]]:
    """Two namespaces joined by a veth pair, gone afterwards."""
    names = (f"lvbench-{os.getpid()}-a", f"lvbench-{os.getpid()}-b")
    with contextlib.ExitStack() as undo:
        for name in names:
            _ip("netns", "add", name)
            undo.callback(_ip, "netns", "del", name)
        _ip(
            "link",
            "add",
            "data0",
            "netns",
            names[0],
            "type",
            "veth",
            "peer",
            "name",
            "data0",
            "netns",
            names[1],
        )
        for name, address in zip(names, (HERE, THERE), strict=True):
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", "data0")
            _ip("-n", name, "link", "set", "data0", "up")
        yield names


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def cpu_seconds(pid: int) -> float:
    """CPU time that ``pid`` has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    """Memory that ``pid`` has resident, in MiB."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else float("nan")


async def measure(label: str, pid: int, seconds: float) -> dict[str, object]:
    """Watch ``pid`` for ``seconds``."""
    await asyncio.sleep(3)  # what it does when it starts is not what it costs
    before = cpu_seconds(pid)
    await asyncio.sleep(seconds)
    share = (cpu_seconds(pid) - before) / seconds
    return {"case": label, "cpu_percent": round(100 * share, 2), "rss_mib": round(resident_mib(pid), 1)}


class Bench:
    """The processes of one run; ends them all."""

    def __init__(self, directory: Path, inside: tuple[str, str], controller: Controller, target: str) -> None:
        self.directory, self.inside, self.controller, self.target = directory, inside, controller, target
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, where: int, *command: str, log: str = "", **environ: str) -> subprocess.Popen[bytes]:
        """Start ``command`` in one of the two namespaces."""
        out = (self.directory / log).open("wb") if log else subprocess.DEVNULL
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), **environ}
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.inside[where], *command],
            stdout=out,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self.running.append(process)
        return process

    def jobs(self, count: int, period: float) -> None:
        """Start ``count`` jobs of one rank here, connected to there."""
        for number in range(count):
            name = f"bench-{number}"
            command = (sys.executable, "-c", JOB, THERE, "5001", str(period))
            self.start(0, *command, log=f"{name}.log", **_environment(name))

    def end(self) -> None:
        """End every process started so far."""
        for process in self.running:
            process.kill()
            process.wait()
        self.running.clear()

    async def crowd(self, count: int, **environ: str) -> None:
        """Open ``count`` connections from here to there, of a process with ``environ``."""
        self.start(1, sys.executable, "-c", PEER, THERE, "5002")
        await asyncio.sleep(1)
        self.start(0, sys.executable, "-c", CROWD, THERE, "5002", str(count), log="crowd.log", **environ)
        for _ in range(300):
            if "ready" in (self.directory / "crowd.log").read_text():
                return
            await asyncio.sleep(0.2)
        sys.exit("error: the connections could not be opened: raise the limit of open files")

    async def scans(self, count: int, seconds: float) -> list[dict[str, object]]:
        """Measure the listing of ``count`` connections by itself."""
        await self.crowd(count)
        arguments = ("-c", SCANS, HERE, str(max(3, round(seconds / 3))))
        scans = self.start(0, sys.executable, *arguments, log="scans.log")
        await asyncio.to_thread(scans.wait)
        self.end()
        rows = json.loads((self.directory / "scans.log").read_text())
        return [{"case": label, "cpu_percent": round(share, 2), "sockets": count} for label, share in rows]

    async def case(
        self, label: str, count: int, period: float, seconds: float, sockets: int = 0, **environ: str
    ) -> dict[str, object]:
        """Measure the agent with ``count`` jobs, and ``sockets`` connections of another's ``environ``."""
        config = self.directory / "agent.toml"
        config.write_text(f'[agent]\nhost = "h1"\ncontrollers = ["{self.target}"]\ninterface = "data0"\n')
        self.controller.flows.clear()
        self.controller.iterations.clear()
        if sockets:
            await self.crowd(sockets, **environ)
        self.start(1, sys.executable, "-c", PEER, THERE, "5001")
        leveller = str(Path(sys.executable).with_name("leveller"))
        agent = self.start(0, leveller, "agent", "--config", str(config))
        await asyncio.sleep(3)
        self.jobs(count, period)
        row = await measure(label, agent.pid, seconds)
        row |= self._news(count)
        self.end()
        return row

    def _news(self, count: int) -> dict[str, object]:
        opened, logged = [], []
        for number in range(count):
            text = (self.directory / f"bench-{number}.log").read_text()
            opened += [int(ns) for ns in re.findall(r"opened (\d+)", text)]
            for iteration, ns in re.findall(r"iteration +(\d+)/.* at (\d+)", text):
                arrivals = self.controller.iterations.get(f"bench-{number}", [])
                first = next((when for done, when in arrivals if done >= int(iteration)), None)
                logged += [(first - int(ns)) / 1e6] if first else []
        # Flows are told apart by port only: match openings and arrivals in order of time.
        flows = sorted(self.controller.flows.values())
        waits = [(there - here) / 1e6 for here, there in zip(sorted(opened), flows, strict=False)]
        return {"flows": len(flows), "flow_ms": _middle(waits), "iteration_ms": _middle(logged)}


def _environment(job: str) -> dict[str, str]:
    return {"RANK": "0", "WORLD_SIZE": "2", "SLURM_JOB_ID": job}


def _middle(values: list[float]) -> float | None:
    return round(statistics.median(values), 1) if values else None


async def run(jobs: int, seconds: float, sockets: int) -> list[dict[str, object]]:
    """Run every case; return a row each."""
    with tempfile.TemporaryDirectory() as directory, namespaces() as inside:
        controller, server = Controller(), grpc.aio.server()
        target = f"unix:{directory}/controller.sock"
        agent_pb2_grpc.add_AgentsServicer_to_server(controller, server)
        server.add_insecure_port(target)
        await server.start()
        bench = Bench(Path(directory), inside, controller, target)
        try:
            floor = bench.start(0, sys.executable, "-c", FLOOR, target)
            rows = [await measure("floor: empty messages", floor.pid, seconds)]
            bench.end()
            rows.append(await bench.case(f"idle: {jobs} jobs", jobs, 0, seconds))
            rows.append(await bench.case(f"busy: {jobs} jobs, 10 iterations/s each", jobs, 0.1, seconds))
            rows.append(await bench.case(f"sockets: {sockets} of others", jobs, 0, seconds, sockets))
            label = f"sockets: {sockets} of one job more"
            rows.append(await bench.case(label, jobs, 0, seconds, sockets, **_environment(CROWD_JOB)))
            rows += await bench.scans(sockets, seconds)
        finally:
            bench.end()
            await server.stop(0)
    return rows


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description="CPU share, memory and delays of the host agent.")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--sockets", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("error: network namespaces need root: run it as root")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # leave nothing behind then, either
    rows = asyncio.run(run(arguments.jobs, arguments.seconds, arguments.sockets))
    if arguments.json:
        print(json.dumps(rows))
        return
    print(f"{'case':42}{'CPU %':>8}{'RSS MiB':>9}{'flow ms':>9}{'iteration ms':>14}")
    for row in rows:
        values = [row.get(key) for key in ("cpu_percent", "rss_mib", "flow_ms", "iteration_ms")]
        texts = ["-" if value is None else str(value) for value in values]
        print(f"{row['case']:42}{texts[0]:>8}{texts[1]:>9}{texts[2]:>9}{texts[3]:>14}")


if __name__ == "__main__":
    main()
