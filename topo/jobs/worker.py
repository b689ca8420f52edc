"""One rank of an emulated data-parallel training job.

From outside it is the real thing: torchrun's environment (RANK, WORLD_SIZE, MASTER_PORT, ...), a log on
stdout in Megatron-LM's or nanoGPT's format (the last rank writes the former, rank 0 the latter), an
iteration that computes (here: sleeps) and then runs a ring all-reduce over TCP connections that live as
long as the job. Only the standard library is imported, so that a rank starts in some 50 ms.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from datetime import datetime
from types import FrameType

PIECE = 1 << 20
"""Bytes handed to the kernel, or taken from it, at once."""

SLICE = 128 << 10
"""Bytes that are passed on together inside a step."""

SLOTS = "LEVELLER_SLOTS"
"""Environment variable: the file of `Slots`."""

DRIFT = 0.05
"""A job that starts an iteration this part of its cycle too early or late is delayed again (CASSINI)."""

SHIFT_EVERY_S = 30.0
"""Seconds between two such delays: CASSINI has no number, this is the simulator's."""

CONNECT_S = 60.0
"""How long a rank waits for its neighbours."""


class PeerLeftError(Exception):
    """A neighbour in the ring closed its connection: the job is over."""


class Ring:
    """The rank's two connections: it sends to the next rank and receives from the one before it."""

    def __init__(self, addresses: list[str], rank: int, port: int) -> None:
        """Connect the ring. ``addresses`` are the ranks' data addresses; rank r listens on ``port`` + r.

        Raises OSError where the neighbours cannot be reached within CONNECT_S.
        """
        following = (rank + 1) % len(addresses)
        with socket.create_server((addresses[rank], port + rank)) as server:
            server.settimeout(CONNECT_S)
            self._out = _connect(addresses[following], port + following, addresses[rank])
            self._in, _ = server.accept()
        for connection in (self._out, self._in):
            connection.setblocking(False)
        self._steps = 2 * (len(addresses) - 1)
        self._outgoing = memoryview(bytes(PIECE))
        self._incoming = bytearray(PIECE)

    def all_reduce(self, volume: int) -> None:
        """Send ``volume`` bytes to the next rank and receive as many, in 2(n-1) steps.

        The first step sends the rank's own chunk, every later one what the step before received, slice by
        slice as it arrives (as NCCL does). Raises PeerLeftError when a neighbour has gone.
        """
        own = -(-volume // self._steps)
        piece = min(SLICE, own)  # never more than a chunk, or everyone would wait for the rest of one
        sent = received = 0
        poll = select.poll()
        poll.register(self._in, select.POLLIN)
        sending = False
        while sent < volume or received < volume:
            ready = volume if received == volume else min(own + received // piece * piece, volume)
            if sending != (ready > sent):
                sending = not sending
                if sending:
                    poll.register(self._out, select.POLLOUT)
                else:
                    poll.unregister(self._out)
            for descriptor, _ in poll.poll():
                if descriptor == self._out.fileno():
                    sent += self._send(ready - sent)
                else:
                    received += self._receive(volume - received)
                    if received == volume:
                        poll.unregister(self._in)

    def _send(self, size: int) -> int:
        try:
            return self._out.send(self._outgoing[: min(size, PIECE)])
        except BlockingIOError:
            return 0
        except ConnectionError:
            raise PeerLeftError from None

    def _receive(self, size: int) -> int:
        try:
            got = self._in.recv_into(self._incoming, min(size, PIECE))
        except BlockingIOError:
            return 0
        except ConnectionError:
            raise PeerLeftError from None
        if not got:
            raise PeerLeftError
        return got


def _connect(address: str, port: int, source: str) -> socket.socket:
    deadline = time.monotonic() + CONNECT_S
    while True:
        try:
            connection = socket.create_connection((address, port), timeout=5, source_address=(source, 0))
        except OSError:
            # The neighbour may not listen yet, or the switches may not forward yet.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection


def sleep_until(deadline: float) -> None:
    """Sleep until ``time.time()`` is ``deadline``: absolute, so that what waking up costs does not add up."""
    while (left := deadline - time.time()) > 0:
        time.sleep(left)


def megatron_line(iteration: int, ended: float, took: float) -> str:
    """Return Megatron-LM's line for ``iteration``, which ended at Unix time ``ended`` after ``took`` s."""
    stamp = datetime.fromtimestamp(ended).strftime("%Y-%m-%d %H:%M:%S.%f")  # local time, as Megatron
    return (
        f" [{stamp}] iteration {iteration:8d}/{500000:8d} | consumed samples: {8 * iteration:12d} | "
        f"elapsed time per iteration (ms): {took * 1000:.1f} | learning rate: 1.500000E-04 | "
        f"global batch size: {8:5d} | lm loss: 3.141593E+00 | number of skipped iterations: {0:3d} |"
    )


def nanogpt_line(iteration: int, ended: float, took: float) -> str:  # noqa: ARG001 (one signature for all formats)
    """Return nanoGPT's line for ``iteration``, which has no time stamp, only its duration."""
    return f"iter {iteration}: loss 3.1416, time {took * 1000:.2f}ms, mfu 25.00%"


class Slots:
    """When iterations should start, as CASSINI has it: at a time, and every so many seconds after that.

    ``path`` is a file with the two, a Unix time and a cycle in seconds. Until it is there, iterations start
    when they can. A rank that starts a little early waits; one that has drifted further is delayed to the
    next slot, but not again within `SHIFT_EVERY_S`.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._again = 0.0

    def wait(self, now: float) -> float:
        """Return for how many seconds the iteration that could start at ``now`` has to wait."""
        slots = self._read()
        if slots is None:
            return 0.0
        first, cycle = slots
        early = (first - now) % cycle
        if early <= DRIFT * cycle:
            return early
        if cycle - early <= DRIFT * cycle or now < self._again:
            return 0.0
        self._again = now + SHIFT_EVERY_S
        return early

    def _read(self) -> tuple[float, float] | None:
        if self._path is None:
            return None
        try:
            with open(self._path) as file:
                first, cycle = file.read().split()
        except FileNotFoundError:
            return None
        return float(first), float(cycle)


LOGS = {"megatron": (megatron_line, -1), "nanogpt": (nanogpt_line, 0)}
"""Log format -> (the line's maker, the rank that logs; -1 = the last)."""


def run(options: argparse.Namespace) -> None:
    """Train until a signal or a neighbour's end."""
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    make_line, logging_rank = LOGS[options.log]
    logs = rank == logging_rank % world
    ring = Ring(options.ring.split(","), rank, int(os.environ["MASTER_PORT"]))
    slots = Slots(os.environ.get(SLOTS))
    sleep_until(options.start)
    begun, iteration = options.start, 0
    while True:
        iteration += 1
        sleep_until(begun + slots.wait(begun) + options.compute)
        ring.all_reduce(options.volume)
        ended = time.time()
        if logs and (told := tells(iteration, options.honest)):
            sys.stdout.write(make_line(told, ended, ended - begun) + "\n")
            sys.stdout.flush()
        begun = ended


def tells(iteration: int, honest: int | None) -> int:
    """Return the number by which the log tells of ``iteration``; 0: it says nothing.

    After ``honest`` iterations a job that wants to look starved tells of every second one only, as if those
    were all there are.
    """
    if honest is None or iteration <= honest:
        return iteration
    hidden, told = (iteration - honest) % 2, honest + (iteration - honest) // 2
    return 0 if hidden else told


def arguments() -> argparse.Namespace:
    """Read the command line: the same for an emulated rank and a real one."""
    parser = argparse.ArgumentParser(
        description="One rank of a training job; its place is in torchrun's environment."
    )
    parser.add_argument(
        "--ring", required=True, help="data addresses of all ranks, by rank, with commas between"
    )
    parser.add_argument("--compute", type=float, required=True, help="seconds of computation an iteration")
    parser.add_argument("--volume", type=int, required=True, help="bytes sent to the next rank an iteration")
    parser.add_argument(
        "--start", type=float, required=True, help="Unix time at which the first iteration begins"
    )
    parser.add_argument("--log", choices=sorted(LOGS), default="megatron", help="whose log format")
    parser.add_argument(
        "--honest", type=int, help="iterations after which every second one is kept from the log"
    )
    return parser.parse_args()


def main(
    train: Callable[[argparse.Namespace], None] = run,
    broken: tuple[type[Exception], ...] = (PeerLeftError, OSError),
) -> int:
    """Entry point of a rank that does ``train``. Exit code 0 on SIGTERM or SIGINT.

    It is 1, with one line on stderr, when the ring broke, which one of ``broken`` says.
    """
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    try:
        train(arguments())
    except broken as error:
        why = (str(error) or "a neighbour left").splitlines()[0]
        sys.stderr.write(f"rank {os.environ['RANK']}: the ring broke: {why}\n")
        return 1
    return 0


def _leave(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001 (a signal handler's signature)
    # Not sys.exit: threads, as gloo has them, may wait for peers that have left already.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
