"""Flow entries into one switch: our southbound beside plain finsy, and beside what the server can take.

Each way inserts the same entries into the same switch process and takes them out again, in a process of its
own, so that peak memory is its own; the ways take turns. "leveller" is one `Fabric.apply`, from five-tuples
to acknowledged and accounted for. "finsy" makes a `P4TableEntry` each and inserts them in batches. "floor" is
nothing but Writes that were serialised beforehand: of so many entries, so many of them under way at a time.
``of_floor`` holds a way against the fastest floor, round by round; the median counts. ``cpu_us`` is the
client's own processor time for each entry, whatever else the machine does. A switch is a machine of its own:
it has one half of the processors, and each way the other, so that none slows the switch by its own work.

The program is ours, with the size of its IPv4 flow table raised to what is inserted (in the compiled JSON and
the P4Info; 65,536 as compiled).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path

import finsy
import grpc
import structlog
from finsy import P4Schema
from finsy.proto import U128, p4i, p4r, p4r_grpc
from google.protobuf import text_format

import p4src
from controlplane.model import FiveTuple
from controlplane.southbound import Desired, Fabric, FlowEntry, GroupLevel, LevelQueue, Result, Setup, Target
from controlplane.southbound.contract import bind
from controlplane.southbound.diff import Change
from controlplane.southbound.encode import Encoder
from controlplane.southbound.tables import Call

TABLE = "flow_group_v4"
GROUPS = 64
SETUP = Setup({level: LevelQueue(level) for level in range(8)}, 1, frozenset({1, 2}), frozenset({3}))
COMMANDS = {
    "softswitch": shutil.which("softswitch", path=str(Path(sys.executable).parent)),
    "bmv2": shutil.which("simple_switch_grpc"),
}
WARM = "push"
FLOORS = ("floor 1000 1", "floor 1000 2", "floor 500 4")
WAYS = (*FLOORS, "leveller", "finsy 500", "finsy 1000")


def program(folder: Path, entries: int) -> p4src.Program:
    """Return our program with room for ``entries`` IPv4 flows, written into ``folder``; made once."""
    ours = p4src.program("v1model")
    made = replace(ours, json=folder / "leveller.json", p4info=folder / "leveller.p4info.txtpb")
    if not made.json.exists():
        compiled = json.loads(ours.json.read_text())
        for table in (table for pipeline in compiled["pipelines"] for table in pipeline["tables"]):
            if table["name"].endswith(f".{TABLE}"):
                table["max_size"] = max(entries, table["max_size"])
        made.json.write_text(json.dumps(compiled))
        info = text_format.Parse(ours.p4info.read_text(), p4i.P4Info())
        for described in info.tables:
            if described.preamble.alias == TABLE:
                described.size = max(entries, described.size)
        made.p4info.write_text(text_format.MessageToString(info))
    return made


def flows(entries: int) -> dict[FiveTuple, FlowEntry]:
    """Return that many flows between two racks."""
    hosts = [IPv4Address(0x0A000001 + number) for number in range(1 + entries // 50_000)]
    there = IPv4Address("10.1.0.1")
    return {
        FiveTuple(hosts[number // 50_000], there, 6, 1 + number % 50_000, 5000): FlowEntry(
            1 + number % GROUPS, 1 + number
        )
        for number in range(entries)
    }


class Stopwatch:
    """The time that the ``with`` took: on the wall, and of this process's processors.

    What there was before is not looked through again for garbage, whichever way it was made.
    """

    def __enter__(self) -> Stopwatch:
        """Start."""
        gc.freeze()
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop."""
        self.wall_s = time.perf_counter() - self._wall
        self.cpu_s = time.process_time() - self._cpu


@contextmanager
def running(kind: str) -> Iterator[Target]:
    """Run a switch on loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [str(COMMANDS[kind]), "--device-id", "1", "--log-level", "warn", "--no-p4", "--"]
    command += ["--grpc-server-addr", address, "--cpu-port", "510", "--priority-queues", "8"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.sched_setaffinity(process.pid, halves()[0])
    try:
        yield Target("S1", address, 1)
    finally:
        process.kill()
        process.wait()


def halves() -> tuple[set[int], set[int]]:
    """Return the processors of the switch, and of its client; the same, where there is but one."""
    all_of = sorted(os.sched_getaffinity(0))
    half = len(all_of) // 2
    return set(all_of[:half] or all_of), set(all_of[half:])


async def leveller(target: Target, made: p4src.Program, entries: int) -> Stopwatch:
    """Insert by our southbound; return what it took."""
    wanted = flows(entries)
    groups = dict.fromkeys(range(1, GROUPS + 1), GroupLevel(3))
    async with Fabric([target], made) as fabric:
        await fabric.connected()
        await fabric.apply({"S1": Desired(SETUP, {}, groups)})
        with Stopwatch() as watch:
            outcome = (await fabric.apply({"S1": Desired(SETUP, wanted, groups)}))["S1"]
        assert (outcome.result, outcome.refused, outcome.updates) == (Result.APPLIED, 0, entries), outcome
        outcome = (await fabric.apply({"S1": Desired(SETUP, {}, groups)}))["S1"]
        assert outcome.result is Result.APPLIED, outcome
    return watch


async def by_finsy(target: Target, made: p4src.Program, entries: int, batch: int) -> Stopwatch:
    """Insert by finsy, ``batch`` entries at a time; return what it took."""
    wanted = flows(entries)
    options = finsy.SwitchOptions(
        p4info=made.p4info, p4blob=made.json, device_id=target.device_id, initial_election_id=time.time_ns()
    )
    async with finsy.Switch("S1", target.address, options) as switch:

        def entry(flow: FiveTuple, into: FlowEntry) -> finsy.P4TableEntry:
            match = finsy.P4TableMatch(
                src=int(flow.source),
                dst=int(flow.destination),
                protocol=flow.protocol,
                sport=flow.source_port,
                dport=flow.destination_port,
            )
            action = finsy.P4TableAction("set_group", group=into.group, slot=into.slot)
            return finsy.P4TableEntry(TABLE, match=match, action=action)

        items = list(wanted.items())
        with Stopwatch() as watch:
            for start in range(0, entries, batch):
                await switch.insert([entry(*item) for item in items[start : start + batch]])
        for start in range(0, entries, batch):
            await switch.delete([entry(*item) for item in items[start : start + batch]])
    return watch


async def floor(target: Target, made: p4src.Program, entries: int, batch: int, under_way: int) -> Stopwatch:
    """Send Writes that are ready, ``under_way`` at a time; return what it took."""
    schema = P4Schema(made.p4info, made.json)
    encoder = Encoder(bind(schema.p4info, made.p4info.name))
    election_id = U128.encode(1 << 64 | time.time_ns())
    head = p4r.WriteRequest(device_id=target.device_id, election_id=election_id).SerializeToString()

    def writes(*, insert: bool) -> list[bytes]:
        changes = [
            Change(
                TABLE,
                (int(flow.source), int(flow.destination), 6, flow.source_port, flow.destination_port),
                Call("set_group", into) if insert else None,
                replace=False,
            )
            for flow, into in flows(entries).items()
        ]
        return [
            head + b"".join(map(encoder.encoded, changes[start : start + batch]))
            for start in range(0, entries, batch)
        ]

    inserts, deletes = writes(insert=True), writes(insert=False)
    async with grpc.aio.insecure_channel(target.address) as channel:
        stream = p4r_grpc.P4RuntimeStub(channel).StreamChannel()  # type: ignore[call-arg]
        arbitration = p4r.MasterArbitrationUpdate(device_id=target.device_id, election_id=election_id)
        await stream.write(p4r.StreamMessageRequest(arbitration=arbitration))
        await stream.read()
        write = channel.unary_unary(
            "/p4.v1.P4Runtime/Write", request_serializer=bytes, response_deserializer=bytes
        )

        async def send(requests: Iterator[bytes]) -> None:
            for request in requests:
                await write(request)

        left = iter(inserts)
        with Stopwatch() as watch:
            await asyncio.gather(*(send(left) for _ in range(under_way)))
        for request in deletes:
            await write(request)
    return watch


def once(way: str, target: Target, made: p4src.Program, entries: int) -> None:
    """Run one way in this process and print its seconds and its memory."""
    os.sched_setaffinity(0, halves()[1])
    name, *numbers = way.split()
    before = resident()
    if way == WARM:
        return asyncio.run(push(target, made))
    if name == "leveller":
        watch = asyncio.run(leveller(target, made, entries))
    elif name == "finsy":
        watch = asyncio.run(by_finsy(target, made, entries, int(numbers[0])))
    else:
        watch = asyncio.run(floor(target, made, entries, *map(int, numbers)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return print(
        json.dumps({"seconds": watch.wall_s, "cpu_s": watch.cpu_s, "before_mib": before, "peak_mib": peak})
    )


def resident() -> float:
    """Return this process's resident memory now, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(kind: str, entries: int, rounds: int) -> list[dict[str, object]]:
    """Run all ways in turns against one switch; return a row each."""
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder, running(kind) as target:
        program(Path(folder), entries)
        command = [
            sys.executable,
            __file__,
            "--entries",
            str(entries),
            "--at",
            target.address,
            "--in",
            folder,
        ]
        wait(target.address)
        subprocess.run([*command, "--way", WARM], check=True, capture_output=True)
        for number in range(rounds):
            for way in WAYS[number % len(WAYS) :] + WAYS[: number % len(WAYS)]:
                done = subprocess.run([*command, "--way", way], check=True, capture_output=True, text=True)
                runs[way].append(json.loads(done.stdout.splitlines()[-1]))
    rates = {way: entries / statistics.median(run["seconds"] for run in done) for way, done in runs.items()}
    floors = runs[max(FLOORS, key=rates.__getitem__)]
    return [
        {
            "switch": kind,
            "way": way,
            "entries": entries,
            "entries/s": round(rates[way]),
            "of_floor": round(
                statistics.median(
                    floor["seconds"] / run["seconds"] for floor, run in zip(floors, done, strict=True)
                ),
                2,
            ),
            "cpu_us": round(statistics.median(run["cpu_s"] for run in done) / entries * 1e6, 1),
            "peak_mib": round(max(run["peak_mib"] for run in done)),
            "before_mib": round(max(run["before_mib"] for run in done)),
        }
        for way, done in runs.items()
    ]


def wait(address: str) -> None:
    """Wait until something listens at ``address``."""
    host, _, port = address.rpartition(":")
    for _ in range(200):
        try:
            return socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(address)


async def push(target: Target, made: p4src.Program) -> None:
    """Push the program."""
    async with Fabric([target], made) as fabric:
        await fabric.connected()


def main() -> None:
    """Measure what is installed, and print one table or JSON."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3, help="of each way; the median counts")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--way", choices=(WARM, *WAYS), help=argparse.SUPPRESS)
    parser.add_argument("--at", help=argparse.SUPPRESS)
    parser.add_argument("--in", dest="folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        made = program(options.folder, options.entries)
        return once(options.way, Target("S1", options.at, 1), made, options.entries)
    rows: list[dict[str, object]] = []
    for kind, command in COMMANDS.items():
        if command is None:
            print(f"{kind} is not installed: left out", file=sys.stderr)
            continue
        print(f"{kind}, {options.entries} entries, load {os.getloadavg()[0]:.1f} ...", file=sys.stderr)
        rows += measure(kind, options.entries, options.rounds)
    if options.json:
        return print(json.dumps(rows, indent=2))
    for row in [dict.fromkeys(rows[0]), *rows] if rows else []:
        print(
            "  ".join(
                f"{name if value is None else value!s:>{max(10, len(name))}}" for name, value in row.items()
            )
        )
    return None


if __name__ == "__main__":
    main()
