"""From new levels to all switches flipped, beside the floor: the same Writes sent by hand.

Every round changes the level of every group on every switch. "leveller" is one `Fabric.apply`: difference,
messages, writes into the idle banks, flips. "floor" is nothing but those Writes, their messages built
beforehand, over plain grpc.aio. Both run in turns against the same switch processes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import grpc
import structlog
from finsy import P4Schema
from finsy.proto import U128, p4r, p4r_grpc

import p4src
from controlplane.southbound import Desired, Fabric, GroupLevel, LevelQueue, Result, Setup, Target
from controlplane.southbound.contract import bind
from controlplane.southbound.diff import Change
from controlplane.southbound.encode import MAX_UPDATES, Encoder
from controlplane.southbound.tables import Call

PROGRAM = p4src.program("v1model")
LEVELS = 7
TURNS = 10
"""Each way runs this often, a part of the rounds at a time, so that both see the same load of the machine."""
SETUP = Setup({level: LevelQueue(level) for level in range(8)}, 1, frozenset({1, 2}), frozenset({3}))
COMMANDS = {
    "softswitch": shutil.which("softswitch", path=str(Path(sys.executable).parent)),
    "bmv2": shutil.which("simple_switch_grpc"),
}


def ranking(groups: int, turn: int) -> dict[int, GroupLevel]:
    """Return a ranking in which no group has the level it had in either of the two before."""
    return {group: GroupLevel((group + turn) % LEVELS) for group in range(1, groups + 1)}


@contextmanager
def running(kind: str, count: int) -> Iterator[list[Target]]:
    """Run ``count`` switches on loopback."""
    processes = []
    targets = []
    try:
        for number in range(1, count + 1):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                address = f"127.0.0.1:{probe.getsockname()[1]}"
            command = [
                str(COMMANDS[kind]),
                "--device-id",
                str(number),
                "--log-level",
                "warn",
                "--no-p4",
                "--",
            ]
            command += ["--grpc-server-addr", address, "--cpu-port", "510", "--priority-queues", "8"]
            processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            targets.append(Target(f"S{number}", address, number))
        yield targets
    finally:
        for process in processes:
            process.kill()
            process.wait()


class Leveller:
    """The controller's own way."""

    def __init__(self, fabric: Fabric, targets: list[Target], groups: int) -> None:
        self._fabric = fabric
        self._targets = targets
        self._groups = groups

    async def settle(self, turn: int) -> None:
        """Wait until this is the primary, and bring both banks to known rankings."""
        while not all(status.primary for status in self._fabric.status().values()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for before in (turn - 2, turn - 1):
            await self.round(before)

    async def round(self, turn: int) -> None:
        """Apply one ranking everywhere."""
        levels = ranking(self._groups, turn)
        outcomes = await self._fabric.apply(
            {target.name: Desired(SETUP, {}, levels) for target in self._targets}
        )
        assert all(outcome.result is Result.APPLIED for outcome in outcomes.values()), outcomes


class Floor:
    """The Writes alone, to one switch."""

    def __init__(self, target: Target, election_id: int, encoder: Encoder, groups: int) -> None:
        self._device_id = target.device_id
        self._election_id = U128.encode(election_id)
        self._channel = grpc.aio.insecure_channel(target.address)
        self._stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._requests = [self._build(encoder, groups, turn) for turn in range(2 * LEVELS)]

    async def __aenter__(self) -> Floor:
        """Become the switch's primary."""
        self._stream = self._stub.StreamChannel()  # type: ignore[call-arg]  # optional, whatever its stubs say
        arbitration = p4r.MasterArbitrationUpdate(device_id=self._device_id, election_id=self._election_id)
        await self._stream.write(p4r.StreamMessageRequest(arbitration=arbitration))
        await self._stream.read()
        return self

    async def __aexit__(self, *error: object) -> None:
        """Leave it to the controller again."""
        await self._channel.close(None)

    def _build(self, encoder: Encoder, groups: int, turn: int) -> list[p4r.WriteRequest]:
        bank = turn % 2
        changes = [
            Change("group_level", (bank, group), Call("set_level", level))
            for group, level in ranking(groups, turn).items()
        ]
        batches = [changes[at : at + MAX_UPDATES] for at in range(0, groups, MAX_UPDATES)]
        batches.append([Change("active_bank", (), Call("set_bank", (bank,)))])
        return [
            p4r.WriteRequest(
                device_id=self._device_id,
                election_id=self._election_id,
                updates=[encoder.update(change) for change in batch],
            )
            for batch in batches
        ]

    async def round(self, turn: int) -> None:
        """Write one ranking and flip."""
        for request in self._requests[turn % (2 * LEVELS)]:
            await self._stub.Write(request)


async def measure(kind: str, switches: int, groups: int, rounds: int) -> dict[str, object]:
    """Return the times of both ways."""
    schema = P4Schema(PROGRAM.p4info, PROGRAM.json)
    encoder = Encoder(bind(schema.p4info, PROGRAM.p4info.name))
    ours: list[float] = []
    floor: list[float] = []
    turns = iter(range(2, 1_000_000))
    with running(kind, switches) as targets:
        async with Fabric(targets, PROGRAM) as fabric:
            await asyncio.wait_for(fabric.connected(), 60)
            leveller = Leveller(fabric, targets, groups)
            for block in range(TURNS):
                await leveller.settle(next(turns))
                for _ in range(rounds // TURNS):
                    began = time.perf_counter()
                    await leveller.round(next(turns))
                    ours.append(time.perf_counter() - began)
                async with AsyncExitStack() as stack:
                    floors = [Floor(target, (block + 2) << 64, encoder, groups) for target in targets]
                    hands = [await stack.enter_async_context(each) for each in floors]
                    for _ in range(rounds // TURNS):
                        turn = next(turns)
                        began = time.perf_counter()
                        await asyncio.gather(*(hand.round(turn) for hand in hands))
                        floor.append(time.perf_counter() - began)
    p50, p99 = quantiles(ours)
    floor50, floor99 = quantiles(floor)
    return {
        "switch": kind,
        "switches": switches,
        "groups": groups,
        "rounds": len(ours),
        "p50_ms": p50,
        "p99_ms": p99,
        "floor_p50_ms": floor50,
        "floor_p99_ms": floor99,
        "ratio_p50": round(p50 / floor50, 2),
    }


def quantiles(seconds: list[float]) -> tuple[float, float]:
    """Return median and 99th percentile in milliseconds."""
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return round(1e3 * cuts[49], 2), round(1e3 * cuts[98], 2)


def main() -> None:
    """Measure what is installed, and print one table or JSON."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--switches", type=int, default=5)
    parser.add_argument("--groups", type=int, nargs="+", default=[64, 1000])
    parser.add_argument("--rounds", type=int, default=200, help="of each way")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    for kind, command in COMMANDS.items():
        if command is None:
            print(f"{kind} is not installed: left out", file=sys.stderr)
            continue
        for groups in options.groups:
            print(f"{kind}, {options.switches} switches, {groups} groups ...", file=sys.stderr)
            rows.append(asyncio.run(measure(kind, options.switches, groups, options.rounds)))
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    for row in [dict.fromkeys(rows[0]), *rows] if rows else []:
        print(
            "  ".join(
                f"{name if value is None else value!s:>{max(10, len(name))}}" for name, value in row.items()
            )
        )


if __name__ == "__main__":
    main()
